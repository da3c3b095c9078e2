# SPDX-License-Identifier: Apache-2.0
"""Trains a recurrent network with lax.scan over time, and a scan over steps around it."""

import jax
import jax.numpy as jnp
from jax import lax

STEPS, TIMES, BATCH, WIDTH = 60, 32, 16, 64


def parameters(key):
    keys = jax.random.split(key, 3)
    return {"in": jax.random.normal(keys[0], (4, 4 * WIDTH)) * 0.2,
            "hidden": jax.random.normal(keys[1], (WIDTH, 4 * WIDTH)) * 0.1,
            "out": jax.random.normal(keys[2], (WIDTH, 1)) * 0.1}


def predict(weights, x):
    def cell(state, now):
        hidden, memory = state
        gates = now @ weights["in"] + hidden @ weights["hidden"]
        new, keep, forget, out = jnp.split(gates, 4, axis=1)
        memory = jax.nn.sigmoid(forget) * memory + jax.nn.sigmoid(keep) * jnp.tanh(new)
        hidden = jax.nn.sigmoid(out) * jnp.tanh(memory)
        return (hidden, memory), None
    zero = jnp.zeros((x.shape[1], WIDTH))
    return lax.scan(cell, (zero, zero), x)[0][0] @ weights["out"]


def loss(weights, x, y):
    return jnp.mean((predict(weights, x) - y) ** 2)


@jax.jit
def step(weights, x, y):
    value, gradient = jax.value_and_grad(loss)(weights, x, y)
    return jax.tree.map(lambda w, g: w - 0.05 * g, weights, gradient), value


@jax.jit
def many_steps(weights, x, y):
    return lax.scan(lambda w, _: step(w, x, y), weights, None, length=STEPS)


def main():
    x = jax.random.normal(jax.random.key(0), (TIMES, BATCH, 4))
    y = jnp.sum(x, axis=(0, 2))[:, None] / 8
    weights = parameters(jax.random.key(1))
    for number in range(STEPS):
        weights, value = step(weights, x, y)
        if number % 20 == 0:
            print("step", number, "loss", round(float(value), 2))
    weights, values = many_steps(weights, x, y)
    print("scan of steps: improves", bool(values[-1] < values[0]), "finite",
          bool(jnp.all(jnp.isfinite(values))))


if __name__ == "__main__":
    main()
