# SPDX-License-Identifier: Apache-2.0
"""pmap, collectives and sharded arrays on the devices at hand, also if there is one."""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def main():
    devices = jax.devices()[:1]
    count = len(devices)
    x = jnp.arange(count * 128.0).reshape(count, 128)

    @functools.partial(jax.pmap, axis_name="i", devices=devices)
    def normalise(v):
        return v / jax.lax.psum(jnp.sum(v), "i")
    print("pmap, psum", round(float(jnp.sum(normalise(x))), 4))

    @functools.partial(jax.pmap, axis_name="i", devices=devices)
    def steps(v):
        def body(_, state):
            return jax.lax.pmean(jnp.tanh(state) + v, "i")
        return jax.lax.fori_loop(0, 20, body, v)
    print("loop in pmap", round(float(jnp.mean(steps(x / 128))), 3))

    mesh = Mesh(devices, ("data",))
    rows = jax.device_put(jnp.ones((count * 8, 64)), NamedSharding(mesh, PartitionSpec("data")))
    product = jax.jit(lambda a: a @ a.T, out_shardings=NamedSharding(mesh, PartitionSpec()))
    print("sharded product", float(jnp.sum(product(rows))))
    asynchronous = [jax.jit(lambda a, n=n: jnp.sum(a) * n)(rows) for n in range(20)]
    print("asynchronous", sum(float(value) for value in asynchronous))


if __name__ == "__main__":
    main()
