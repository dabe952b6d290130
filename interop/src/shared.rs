//! One thing that the tests of a file share, such as a booted guest: made by the first, used in turn.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::{Error, Result};

/// Made on first use; every test holds it alone. When making it fails, every test fails with that reason.
///
/// ```no_run
/// # use uaskit_interop::{Shared, qemu::{Machine, Vm}};
/// static VM: Shared<Vm> = Shared::new(|| Machine::new("example").boot());
/// let mut vm = VM.lock()?;
/// # Ok::<(), uaskit_interop::Error>(())
/// ```
#[derive(Debug)]
pub struct Shared<T> {
    cell: OnceLock<std::result::Result<Mutex<T>, String>>,
    make: fn() -> Result<T>,
}

impl<T> Shared<T> {
    /// Says how to make it.
    pub const fn new(make: fn() -> Result<T>) -> Self {
        Self { cell: OnceLock::new(), make }
    }

    /// Waits for the tests that hold it. A test that panicked while it held it does not spoil it for the next.
    pub fn lock(&self) -> Result<MutexGuard<'_, T>> {
        match self.cell.get_or_init(|| (self.make)().map(Mutex::new).map_err(|error| error.to_string())) {
            Ok(mutex) => Ok(mutex.lock().unwrap_or_else(PoisonError::into_inner)),
            Err(reason) => Err(Error::unexpected("what the tests share could not be made", reason.as_str())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_once() {
        static SHARED: Shared<Vec<u8>> = Shared::new(|| Ok(Vec::new()));
        SHARED.lock().expect("made").push(7);
        assert_eq!(*SHARED.lock().expect("made before"), [7]);
    }

    #[test]
    fn a_failure_to_make_it_is_returned_to_each_caller() {
        static SHARED: Shared<()> = Shared::new(|| Err(Error::unexpected("boot", "no kernel")));
        for _ in 0..2 {
            assert!(SHARED.lock().expect_err("cannot be made").to_string().contains("no kernel"));
        }
    }
}
