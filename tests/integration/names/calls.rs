// SPDX-License-Identifier: Apache-2.0
// Launches from Rust: generics, closures, traits, iterators.
use std::hint::black_box;

extern "C" {
    fn device_open();
    fn device_launch(blocks: u32);
    fn device_close();
}

mod net {
    pub trait Layer {
        fn forward(&self, blocks: u32);
    }

    pub struct Scale<T> {
        pub by: T,
    }

    impl<T: Copy + Into<u64>> Layer for Scale<T> {
        #[inline(never)]
        fn forward(&self, blocks: u32) {
            super::twice(blocks + self.by.into() as u32);
            super::black_box(());
        }
    }
}

#[inline(always)]
fn launch(blocks: u32) {
    unsafe { device_launch(blocks) }
}

#[inline(always)]
fn twice(blocks: u32) {
    launch(blocks);
    launch(blocks + 1);
}

#[inline(never)]
fn each(list: &[u32]) {
    list.iter().map(|b| b + 1).for_each(|b| {
        twice(b);
        black_box(());
    });
}

fn main() {
    use net::Layer;

    unsafe { device_open() };
    net::Scale { by: black_box(2u32) }.forward(1);
    net::Scale { by: black_box(2u64) }.forward(1);
    each(black_box(&[1, 2, 3]));
    unsafe { device_close() };
}
