//! Fields of part files: numbers within bounds, and errors that name their key.
//!
//! Left out: the files, which [`super::schema`] reads. Always true: a value outside of its bounds is an error.

use super::quantity::{Quantity, Size};
use serde::de::DeserializeOwned;
use sim::drive::SECTOR_BYTES;

/// An invalid value of a well-formed number.
#[derive(Debug)]
pub(super) struct FieldError {
    /// Key: `flash.read`.
    pub(super) place: String,
    /// The error in it, and what was expected.
    pub(super) what: String,
}

/// The file of a kind of part.
pub(super) trait File: DeserializeOwned {
    /// The model of the part.
    type Part;

    /// Returns the description.
    fn title(&self) -> &str;

    /// Builds the model of the part.
    fn make(&self) -> Result<Self::Part, FieldError>;
}

impl FieldError {
    pub(super) fn new(place: &str, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into() }
    }
}

/// A number within bounds.
pub(super) fn within<T: TryFrom<u64>, M>(
    place: &str,
    quantity: &Quantity<M>,
    least: u64,
    most: u64,
) -> Result<T, FieldError> {
    let whole = quantity.whole();
    let fits = (least..=most).contains(&whole).then(|| T::try_from(whole).ok()).flatten();
    fits.ok_or_else(|| {
        let what = format!("`{place}` is {whole} in its smallest unit, expected {least} to {most}");
        FieldError::new(place, what)
    })
}

pub(super) fn sectors(place: &str, size: &Quantity<Size>) -> Result<u32, FieldError> {
    let bytes: u64 = within(place, size, 0, 1 << 40)?;
    u32::try_from(bytes / u64::from(SECTOR_BYTES))
        .map_err(|_| FieldError::new(place, format!("`{place}` is too large")))
}
