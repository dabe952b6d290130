//! The whole mode parameter list: header, block descriptors, pages (SPC-5, mode parameter list format).

use super::{ModeForm, ModeHeader, ModePages};
use crate::{DecodeError, NoRoom, Writer};

/// A list, split into its parts.
#[derive(Clone, Debug)]
pub struct ModeParameters<'a> {
    /// The header.
    pub header: ModeHeader,
    /// The block descriptors; which kind they are is in [`ModeHeader::long_lba`].
    pub block_descriptors: &'a [u8],
    /// The bytes of the pages.
    pub page_bytes: &'a [u8],
}

impl<'a> ModeParameters<'a> {
    /// Splits a list. MODE DATA LENGTH is not looked at: it is reserved in MODE SELECT, and an allocation
    /// length may have cut what MODE SENSE returned.
    pub fn decode(form: ModeForm, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let header = ModeHeader::decode(form, bytes)?;
        let needed = form.header_len() + usize::from(header.block_descriptor_length);
        let truncated = DecodeError::Truncated { needed, got: bytes.len() };
        let (front, page_bytes) = bytes.split_at_checked(needed).ok_or(truncated)?;
        let block_descriptors = front.get(form.header_len()..).ok_or(truncated)?;
        Ok(Self { header, block_descriptors, page_bytes })
    }

    /// Splits what MODE SENSE returned. Bytes past MODE DATA LENGTH are not the device's; less than it says may be
    /// there, where the allocation length cut it.
    pub fn decode_sensed(form: ModeForm, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let said = form.total_len(ModeHeader::decode(form, bytes)?.mode_data_length).max(form.header_len());
        Self::decode(form, bytes.get(..said).unwrap_or(bytes))
    }

    /// The pages, one by one.
    pub const fn pages(&self) -> ModePages<'a> {
        ModePages::new(self.page_bytes)
    }
}

/// Builds a list for MODE SENSE front to back; the length is written at the end.
#[derive(Debug)]
pub struct ModeWriter<'a> {
    form: ModeForm,
    writer: Writer<'a>,
}

impl<'a> ModeWriter<'a> {
    /// Starts a list with `header` (its MODE DATA LENGTH does not matter) and the block descriptors,
    /// whose length the header takes over.
    pub fn new(
        form: ModeForm,
        header: ModeHeader,
        block_descriptors: &[u8],
        out: &'a mut [u8],
    ) -> Result<Self, NoRoom> {
        let len = block_descriptors.len();
        let block_descriptor_length =
            u16::try_from(len).map_err(|_| NoRoom { needed: len, got: u16::MAX.into() })?;
        let mut writer = Writer::new(out);
        ModeHeader { mode_data_length: 0, block_descriptor_length, ..header }.put(form, &mut writer)?;
        writer.put(block_descriptors)?;
        Ok(Self { form, writer })
    }

    /// Appends a page as encoded.
    pub fn page(&mut self, page: &[u8]) -> Result<(), NoRoom> {
        self.writer.put(page)
    }

    /// Writes MODE DATA LENGTH; the answer is the bytes of the list.
    ///
    /// A list that the length field of the six byte form cannot say has no room.
    pub fn finish(mut self) -> Result<usize, NoRoom> {
        let total = self.writer.written();
        let got = match self.form {
            ModeForm::Six => 0x100,
            ModeForm::Ten => 0x1_0001,
        };
        let length = self.form.mode_data_length(total).ok_or(NoRoom { needed: total, got })?;
        let [high, low] = length.to_be_bytes();
        match self.form {
            ModeForm::Six => self.writer.patch(0, &[low])?,
            ModeForm::Ten => self.writer.patch(0, &[high, low])?,
        }
        Ok(total)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CachingPage, DeviceSpecific, ShortBlockDescriptor};
    use super::*;

    const HEADER: ModeHeader = ModeHeader {
        mode_data_length: 0,
        medium_type: 0,
        device_specific: DeviceSpecific { write_protected: false, dpo_fua: true },
        long_lba: false,
        block_descriptor_length: 0,
    };

    #[test]
    fn what_is_past_the_length_is_not_the_devices() {
        let bytes = [5, 0, 0x80, 0, 0x08, 0x00, 0x0a, 0x00];
        let sensed = ModeParameters::decode_sensed(ModeForm::Six, &bytes).unwrap();
        assert_eq!(sensed.page_bytes, [0x08, 0x00]);
        assert!(sensed.header.device_specific.write_protected);
        let cut = ModeParameters::decode_sensed(ModeForm::Six, &[200, 0, 0, 0, 0x08, 0x00]).unwrap();
        assert_eq!(cut.page_bytes, [0x08, 0x00]);
        let blank = ModeParameters::decode_sensed(ModeForm::Ten, &[0; 12]).unwrap();
        assert!(blank.page_bytes.is_empty());
    }

    #[test]
    fn a_six_byte_list_is_built_and_split() {
        let mut out = [0; 40];
        let descriptor = ShortBlockDescriptor { block_count: 16, block_length: 512 }.encode();
        let caching = CachingPage { write_cache: true, ..CachingPage::default() };
        let mut writer = ModeWriter::new(ModeForm::Six, HEADER, &descriptor, &mut out).unwrap();
        writer.page(&caching.encode(true)).unwrap();
        assert_eq!(writer.finish(), Ok(32));
        assert_eq!(out[..12], [31, 0, 0x10, 8, 0, 0, 0, 16, 0, 0, 2, 0]);
        assert_eq!(out[12..15], [0x88, 0x12, 0x04]);

        let list = ModeParameters::decode(ModeForm::Six, &out[..32]).unwrap();
        assert_eq!(list.block_descriptors, descriptor);
        let page = list.pages().next().unwrap().unwrap();
        assert_eq!(CachingPage::decode(page.bytes), Ok(caching));
        assert_eq!(list.pages().count(), 1);
    }

    #[test]
    fn a_ten_byte_list_has_two_bytes_of_length() {
        let mut out = [0xff; 300];
        let mut writer = ModeWriter::new(ModeForm::Ten, HEADER, &[], &mut out).unwrap();
        writer.page(&[0; 292]).unwrap();
        assert_eq!(writer.finish(), Ok(300));
        assert_eq!(out[..8], [0x01, 0x2a, 0, 0x10, 0, 0, 0, 0]);
    }

    #[test]
    fn a_list_too_long_for_six_byte_commands_is_refused() {
        let mut out = [0; 300];
        let mut writer = ModeWriter::new(ModeForm::Six, HEADER, &[], &mut out).unwrap();
        writer.page(&[0; 253]).unwrap();
        assert_eq!(writer.finish(), Err(NoRoom { needed: 257, got: 256 }));
    }

    #[test]
    fn block_descriptors_past_the_end_are_reported() {
        let list = ModeParameters::decode(ModeForm::Six, &[0, 0, 0, 8, 1, 2, 3]);
        assert_eq!(list.unwrap_err(), DecodeError::Truncated { needed: 12, got: 7 });
    }
}
