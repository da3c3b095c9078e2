# SPDX-License-Identifier: Apache-2.0
"""JAX's own profiler, which uses CUPTI too, around loops that become CUDA graphs."""

import tempfile

import jax
import jax.numpy as jnp


@jax.jit
def loop(x):
    def body(carry, _):
        return jnp.tanh(carry @ carry.T) + 0.5, jnp.sum(carry)
    return jax.lax.scan(body, x, None, length=50)


@jax.jit
def until(x):
    return jax.lax.while_loop(lambda c: c[0] < 200, lambda c: (c[0] + 1, jnp.sin(c[1]) + 1), (0, x))


def work(times):
    x = jnp.eye(64) * 0.1
    for _ in range(times):
        x = loop(x)[0]
        count, x = until(x)
    return int(count), float(jnp.mean(x))


print("before %d %.4f" % work(5))
for part in ("first", "second"):
    with tempfile.TemporaryDirectory() as folder, jax.profiler.trace(folder):
        print("profiled, %s %d %.4f" % (part, *work(5)))
    print("after, %s %d %.4f" % (part, *work(5)))
