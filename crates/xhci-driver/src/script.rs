//! The fixture of the tests: memory that checks its layouts, a controller that answers
//! commands, a driver.

mod fixture;
mod machine;

pub(crate) use fixture::{Fixture, bulk_in, bulk_out};
pub(crate) use machine::Machine;

extern crate std;

use crate::hardware::{DmaLayout, DmaMemory};
use std::collections::BTreeMap;
use std::vec::Vec;

/// Memory in pieces from 1 MiB up; what was never written reads as zeroes.
#[derive(Default)]
pub(crate) struct Memory {
    bytes: BTreeMap<u64, [u8; 256]>,
    next: u64,
    out: Vec<(u64, DmaLayout)>,
    left: Option<usize>,
}

impl Memory {
    /// Memory that has this many pieces to give.
    pub(crate) fn with_pieces(pieces: usize) -> Self {
        Self { left: Some(pieces), ..Self::default() }
    }

    /// From now on there are this many pieces to give.
    pub(crate) fn limit(&mut self, pieces: usize) {
        self.left = Some(pieces);
    }

    /// Pieces that were not given back.
    pub(crate) fn pieces_out(&self) -> usize {
        self.out.len()
    }
}

impl DmaMemory for Memory {
    fn allocate(&mut self, layout: DmaLayout) -> Option<u64> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1)?;
        }
        let (align, boundary) = (u64::from(layout.align), u64::from(layout.boundary));
        let mut at = (0x10_0000 + self.next).next_multiple_of(align);
        if at / boundary != (at + u64::from(layout.bytes) - 1) / boundary {
            at = at.next_multiple_of(boundary);
        }
        self.next = at + u64::from(layout.bytes) - 0x10_0000;
        self.out.push((at, layout));
        Some(at)
    }

    fn release(&mut self, address: u64, layout: DmaLayout) {
        let found = self.out.iter().position(|piece| *piece == (address, layout));
        self.out.swap_remove(found.expect("only what was allocated is released, with its layout"));
        if let Some(left) = &mut self.left {
            *left += 1;
        }
    }

    fn read_bytes(&mut self, address: u64, into: &mut [u8]) {
        for (at, byte) in (address..).zip(into) {
            *byte = self.bytes.get(&(at / 256)).map_or(0, |block| block[(at % 256) as usize]);
        }
    }

    fn write_bytes(&mut self, address: u64, bytes: &[u8]) {
        for (at, byte) in (address..).zip(bytes) {
            self.bytes.entry(at / 256).or_insert([0; 256])[(at % 256) as usize] = *byte;
        }
    }
}
