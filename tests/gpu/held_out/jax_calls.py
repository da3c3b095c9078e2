# SPDX-License-Identifier: Apache-2.0
"""Calls that leave the compiled program: Python callbacks, own derivatives, Pallas kernels."""

import jax
import jax.numpy as jnp
import numpy
from jax import lax

seen = []


def on_host(x):
    return numpy.asarray(x) * 2


@jax.jit
def with_callback(x):
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)

    def body(_, value):
        return jax.pure_callback(on_host, shape, value) - value
    return lax.fori_loop(0, 5, body, x)


@jax.jit
def with_effects(x):
    jax.experimental.io_callback(lambda v: seen.append(float(v)), None, jnp.sum(x), ordered=True)
    jax.debug.print("debug {}", jnp.sum(x), ordered=True)
    return x + 1


@jax.custom_vjp
def clipped(x):
    return jnp.sum(x * x)


clipped.defvjp(lambda x: (clipped(x), x), lambda x, g: (jnp.clip(2 * x * g, -1, 1),))


def pallas_add():
    from jax.experimental import pallas as pl

    def kernel(x, y, out):
        out[...] = x[...] + y[...]
    x = jnp.arange(256, dtype=jnp.float32)
    add = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))
    return float(jnp.sum(jax.jit(add)(x, x)))


def main():
    import jax.experimental  # noqa: io_callback is below it
    x = jnp.arange(16.0)
    print("callback in a loop", float(jnp.sum(with_callback(x))))
    for _ in range(3):
        x = with_effects(x)
    jax.effects_barrier()
    print("effects", seen)
    print("own derivative", jax.grad(clipped)(jnp.arange(-3.0, 3.0)).tolist())
    try:
        print("pallas", pallas_add())
    except Exception as error:  # noqa: this version or GPU may lack it
        print("pallas: not available:", type(error).__name__)


if __name__ == "__main__":
    main()
