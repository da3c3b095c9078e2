# SPDX-License-Identifier: Apache-2.0
"""Control flow that JAX compiles for the GPU: loops, branches, and their derivatives."""

import jax
import jax.numpy as jnp
from jax import lax


def collatz(n):
    """A loop whose length depends on data."""
    def step(state):
        value, count = state
        return jnp.where(value % 2 == 0, value // 2, 3 * value + 1), count + 1
    return lax.while_loop(lambda state: state[0] != 1, step, (n, 0))[1]


def newton(x):
    """A loop in a loop: the inner one ends early for most values."""
    def outer(i, root):
        def closer(state):
            guess, error = state
            better = 0.5 * (guess + x / guess)
            return better, jnp.max(jnp.abs(better - guess))
        return lax.while_loop(lambda state: state[1] > 1e-3, closer, (root + i, 1.0))[0]
    return lax.fori_loop(0, 5, outer, x)


def branches(x, which):
    """A switch whose branches differ in the number of kernels."""
    return lax.switch(which, [
        lambda v: jnp.sum(v),
        lambda v: jnp.sum(jnp.sort(v)[:10]),
        lambda v: jnp.linalg.norm(v.reshape(32, 32) @ v.reshape(32, 32)),
    ], x)


def nested(x):
    """A branch in a scan in a loop."""
    def body(carry, row):
        carry = lax.cond(jnp.sum(row) > 0, lambda c: c + row, lambda c: c * 0.5, carry)
        return carry, jnp.max(carry)

    def step(state):
        count, value = state
        _, peaks = lax.scan(body, value, x)
        return count + 1, value * 0.9 + jnp.mean(peaks)
    return lax.while_loop(lambda state: state[0] < 20, step, (0, jnp.zeros(x.shape[1])))[1]


def chain(weights, x):
    def layer(h, weight):
        return jnp.tanh(h @ weight), None
    return jnp.sum(lax.scan(layer, x, weights)[0] ** 2)


def main():
    print("while", [int(jax.jit(collatz)(n)) for n in (7, 27, 97)])
    print("while of many", jax.jit(jax.vmap(collatz))(jnp.arange(1, 9)).tolist())
    print("loop in a loop", jnp.round(jax.jit(newton)(jnp.arange(1.0, 5.0)), 3).tolist())
    x = jax.random.normal(jax.random.key(0), (1024,))
    for which in range(3):
        print("switch", which, round(float(jax.jit(branches)(x, which)), 2))
    rows = jax.random.normal(jax.random.key(1), (50, 16))
    print("branch in a scan in a loop", jnp.round(jax.jit(nested)(rows), 2).tolist())
    weights = jax.random.normal(jax.random.key(2), (40, 64, 64)) / 8
    start = jax.random.normal(jax.random.key(3), (8, 64))
    step = jax.jit(jax.value_and_grad(chain))
    for _ in range(30):
        value, gradient = step(weights, start)
        weights = weights - 0.01 * gradient
    print("derivative of a scan", round(float(value), 2))
    print("associative scan", lax.associative_scan(jnp.add, jnp.arange(10)).tolist())
    print("map", lax.map(lambda v: v * v, jnp.arange(5)).tolist())


if __name__ == "__main__":
    main()
