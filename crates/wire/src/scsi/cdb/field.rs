//! The tables of CDB fields, as code: each field once, with its place, so that decode and encode agree.
//!
//! A command is declared with `cdb!`: a column per length it comes in, a row per field. That gives a struct
//! with typed fields, `decode`, `encode`, the usage map that REPORT SUPPORTED OPERATION CODES sends, and a
//! one-line `Display`. Places are written as the standards' tables write them: `bit(1, 3)` is bit 3 of
//! byte 1, `bits(2, 7, 6)` are bits 7 to 6 of byte 2, `bytes(2, 5)` are bytes 2 to 5, big-endian.
//!
//! Always true: a place outside of the CDB reads as zero and takes nothing; a value wider than its place is
//! cut to it. The CONTROL byte is every CDB's last and has no row.

use super::{Cdb, CdbWidth, Control};
use crate::DecodeError;
use core::fmt;
use core::hint::cold_path;

/// Where a field lies in a CDB.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// Nowhere: commands of this length do not have the field.
    Absent,
    /// `width` bits from bit `low` of byte `last` upwards, into the bytes before it.
    Bits { last: usize, low: u32, width: u32 },
    /// One byte in which zero stands for 256.
    ByteOr256(usize),
    /// Bytes that do not follow each other, the most significant first.
    Scattered(&'static [usize]),
}

/// Bit `at` of byte `byte`.
pub(super) const fn bit(byte: usize, at: u32) -> Place {
    bits(byte, at, at)
}

/// Bits `high` to `low` of byte `byte`.
pub(super) const fn bits(byte: usize, high: u32, low: u32) -> Place {
    Place::Bits { last: byte, low, width: high - low + 1 }
}

/// Bytes `first` to `last`, both counted.
pub(super) const fn bytes(first: usize, last: usize) -> Place {
    Place::Bits { last, low: 0, width: 8 * (last - first + 1) as u32 }
}

/// The 21-bit LBA of the six-byte commands: bits 4:0 of byte 1, bytes 2 and 3.
pub(super) const LBA_21: Place = Place::Bits { last: 3, low: 0, width: 21 };

/// SERVICE ACTION, where there is one.
const ACTION: Place = bits(1, 4, 0);

/// The bit of CONTROL that a unit looks at: NACA.
const CONTROL_USED: u8 = 0x04;

impl Place {
    /// The field's value.
    #[inline]
    pub(super) fn get(self, cdb: Whole) -> u64 {
        match self {
            Self::Absent => 0,
            Self::Bits { last, low, width } => (cdb.down_to(last) >> low) as u64 & mask(width),
            Self::ByteOr256(at) => match cdb.byte(at) {
                0 => 256,
                value => value.into(),
            },
            Self::Scattered(places) => {
                places.iter().fold(0, |value, at| value << 8 | u64::from(cdb.byte(*at)))
            }
        }
    }

    /// The field alone, in a CDB that is zero elsewhere.
    #[inline]
    pub(super) fn set(self, value: u64) -> Whole {
        match self {
            Self::Absent => Whole(0),
            Self::Bits { last, low, width } => {
                Whole::up_from(last, (value & mask(width)).into()).shifted(low)
            }
            Self::ByteOr256(at) => Whole::up_from(at, (value as u8).into()),
            Self::Scattered(places) => places.iter().rev().zip(0u32..).fold(Whole(0), |whole, (at, nth)| {
                whole.with(Whole::up_from(*at, (value >> (8 * nth) & 0xff).into()))
            }),
        }
    }
}

/// A CDB as one number: the shortest way to a field that lies across bytes. Bytes that are not there are zero.
#[derive(Clone, Copy)]
pub(super) struct Whole(u128);

impl Whole {
    /// Of at most 16 bytes; no place lies past them.
    #[inline]
    fn of(cdb: &[u8]) -> Self {
        if let Some(bytes) = cdb.first_chunk() {
            return Self(u128::from_be_bytes(*bytes));
        }
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(cdb).for_each(|(place, byte)| *place = *byte);
        Self(u128::from_be_bytes(bytes))
    }

    /// The number with byte `last` as its lowest.
    const fn down_to(self, last: usize) -> u128 {
        self.0 >> (8 * (15 - last))
    }

    const fn byte(self, at: usize) -> u8 {
        self.down_to(at) as u8
    }

    /// A number whose lowest byte is byte `last`.
    const fn up_from(last: usize, number: u128) -> Self {
        Self(number << (8 * (15 - last)))
    }

    const fn shifted(self, low: u32) -> Self {
        Self(self.0 << low)
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Without what lies past this width.
    pub(super) const fn cut(self, width: CdbWidth) -> Self {
        let past = 8 * (16 - width.len() as u32);
        Self(self.0 >> past << past)
    }

    /// The CDB of this width.
    pub(super) const fn cdb(self, width: CdbWidth) -> Cdb {
        Cdb { padded: self.cut(width).0.to_be_bytes(), width }
    }
}

const fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

/// One length of a command, and how its CDB says so.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) name: &'static str,
    pub(super) width: CdbWidth,
    pub(super) opcode: u8,
    /// Service action of this command, where commands share the operation code.
    pub(super) action: Option<u8>,
}

impl Form {
    /// Whether `cdb` begins as this command does; a service action cut off speaks for it.
    #[inline]
    pub(super) fn begins(self, cdb: &[u8]) -> bool {
        let other_action = |action| cdb.get(1).is_some_and(|byte| byte & 0x1f != action);
        cdb.first() == Some(&self.opcode) && !self.action.is_some_and(other_action)
    }

    /// The operation code, and the service action below it where there is one: 9E10h is READ CAPACITY(16).
    fn kind(self) -> u32 {
        let opcode = u32::from(self.opcode);
        self.action.map_or(opcode, |action| opcode << 8 | u32::from(action))
    }

    /// A CDB of this length.
    #[inline]
    pub(super) fn whole(self, cdb: &[u8]) -> Result<Whole, DecodeError> {
        let needed = self.width.len();
        if cdb.len() < needed {
            cold_path();
            return Err(DecodeError::Truncated { needed, got: cdb.len() });
        }
        Ok(Whole::of(cdb))
    }

    /// Returns a CDB with all that is not a field: the operation code, the service action, CONTROL.
    #[inline]
    pub(super) fn start(self, control: Control) -> Whole {
        let opcode = bytes(0, 0).set(self.opcode.into());
        let action = ACTION.set(self.action.unwrap_or(0).into());
        opcode.with(action).with(self.last().set(control.0.into()))
    }

    /// CONTROL of a CDB of this length.
    #[inline]
    pub(super) fn control(self, whole: Whole) -> Control {
        Control(self.last().get(whole) as u8)
    }

    const fn last(self) -> Place {
        bytes(self.width.len() - 1, self.width.len() - 1)
    }
}

/// The fields of a command: `W` lengths, the shortest first, by `K` fields.
pub(super) struct Table<const W: usize, const K: usize> {
    pub(super) forms: [Form; W],
    pub(super) places: [[Place; W]; K],
}

/// One column of a table. Made when compiling, so that each field is a separate shift and mask.
pub(super) struct Layout<const K: usize> {
    pub(super) form: Form,
    pub(super) places: [Place; K],
}

impl<const W: usize, const K: usize> Table<W, K> {
    /// The column of an operation code.
    #[allow(clippy::indexing_slicing, reason = "called when compiling only")]
    pub(super) const fn column(&self, opcode: u8) -> usize {
        let mut column = 0;
        while self.forms[column].opcode != opcode {
            column += 1;
        }
        column
    }

    /// Returns the layout of a column.
    #[allow(clippy::indexing_slicing, reason = "called when compiling only")]
    pub(super) const fn layout(&self, column: usize) -> Layout<K> {
        let mut places = [Place::Absent; K];
        let mut field = 0;
        while field < K {
            places[field] = self.places[field][column];
            field += 1;
        }
        Layout { form: self.forms[column], places }
    }

    /// Why a CDB is none of these.
    #[cold]
    pub(super) fn refusal(&self, cdb: &[u8]) -> DecodeError {
        let form = self.forms.first().expect("a command has at least one length");
        // Of an empty CDB nothing is known but that some length is missing.
        if cdb.is_empty() {
            return DecodeError::Truncated { needed: form.width.len(), got: 0 };
        }
        let whole = Whole::of(cdb);
        let action = form.action.map(|_| ACTION.get(whole) as u8);
        let found = Form { opcode: whole.byte(0), action, ..*form };
        DecodeError::WrongKind { expected: form.kind(), found: found.kind() }
    }

    /// The operation code, then a one for every bit that has a meaning.
    pub(super) fn usage(&self, opcode: u8) -> Option<Cdb> {
        let column = self.forms.iter().position(|form| form.opcode == opcode)?;
        let form = self.forms.get(column)?;
        let Layout { places, .. } = self.layout(column);
        let fields = places.iter().map(|place| place.set(u64::MAX));
        Some(fields.fold(form.start(Control(CONTROL_USED)), Whole::with).cdb(form.width))
    }

    /// The name of the command at this length, or at the next one it has.
    pub(super) fn name(&self, width: CdbWidth) -> &'static str {
        let form = self.forms.iter().find(|form| form.width >= width).or(self.forms.last());
        form.map_or("", |form| form.name)
    }
}

/// Value that a field can hold.
pub(super) trait Value: Copy {
    /// The value of the field's bits.
    fn from_bits(bits: u64) -> Self;
    /// The field's bits.
    fn into_bits(self) -> u64;
    /// The field in a line of text: ` name value`, or nothing where zero goes without saying.
    fn show(self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl Value for bool {
    fn from_bits(bits: u64) -> Self {
        bits != 0
    }
    fn into_bits(self) -> u64 {
        self.into()
    }
    fn show(self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self { write!(f, " {name}") } else { Ok(()) }
    }
}

impl Value for u8 {
    fn from_bits(bits: u64) -> Self {
        bits as u8
    }
    fn into_bits(self) -> u64 {
        self.into()
    }
    fn show(self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_number(name, self.into(), f)
    }
}

/// A number in a line of text. What counts something or says where it is, is decimal, and zero is worth saying; what stands for something
/// is hexadecimal, and zero goes without saying.
fn show_number(name: &str, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let is_quantity = matches!(name, "lba" | "blocks" | "count")
        || ["_len", "_offset", "_index", "_boundary"].iter().any(|end| name.ends_with(end));
    match (is_quantity, value) {
        (true, _) => write!(f, " {name} {value}"),
        (false, 0) => Ok(()),
        (false, _) => write!(f, " {name} {value:#04x}"),
    }
}

/// Numbers of two bytes and more.
macro_rules! number_fields {
    ($($int:ty),+) => { $(
        impl Value for $int {
            fn from_bits(bits: u64) -> Self {
                bits as Self
            }
            fn into_bits(self) -> u64 {
                self.into()
            }
            fn show(self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                show_number(name, self.into(), f)
            }
        }
    )+ };
}
number_fields!(u16, u32);

impl Value for u64 {
    fn from_bits(bits: u64) -> Self {
        bits
    }
    fn into_bits(self) -> u64 {
        self
    }
    fn show(self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_number(name, self, f)
    }
}

/// Lets open codes be fields.
macro_rules! code_fields {
    ($($code:ty),+ $(,)?) => { $(
        impl super::field::Value for $code {
            fn from_bits(bits: u64) -> Self {
                (bits as u8).into()
            }
            fn into_bits(self) -> u64 {
                u8::from(self).into()
            }
            fn show(self, _name: &str, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, " {self}")
            }
        }
    )+ };
}

/// Declares a closed choice: a field of so few bits that every value has a meaning.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $(#[$fmeta:meta])* $first:ident = 0 => $ftext:literal,
            $( $(#[$vmeta:meta])* $variant:ident = $value:literal => $text:literal ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[$fmeta])*
            #[default]
            $first,
            $( $(#[$vmeta])* $variant, )+
        }

        impl super::field::Value for $name {
            fn from_bits(bits: u64) -> Self {
                match bits {
                    $( $value => Self::$variant, )+
                    _ => Self::$first,
                }
            }
            fn into_bits(self) -> u64 {
                match self {
                    Self::$first => 0,
                    $( Self::$variant => $value, )+
                }
            }
            fn show(self, _name: &str, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                if self == Self::$first { Ok(()) } else { write!(f, " {self}") }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(match self {
                    Self::$first => $ftext,
                    $( Self::$variant => $text, )+
                })
            }
        }
    };
}

/// Declares a command of one length, or of several, which share one struct with a `width`.
///
/// `pub struct Name: "NAME" = Width OPCODE [/ SERVICE ACTION] { field: type = place, … }`, or
/// `pub struct Name, width: ["NAME(n)" = Width OPCODE, …] { field: type = [place, …], … }`, a place for
/// every width, the shortest first.
macro_rules! cdb {
    (
        $(#[$meta:meta])*
        pub struct $name:ident: $text:literal = $width:ident $opcode:literal $(/ $action:literal)? {
            $( $(#[$fmeta:meta])* $field:ident: $ty:ty = $place:expr ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $( $(#[$fmeta])* pub $field: $ty, )*
            /// The CONTROL byte, the last of the CDB.
            pub control: super::Control,
        }

        cdb! {
            @codec $name (super::CdbWidth::$width) []
            [{ $text, $width, $opcode, cdb!(@action $($action)?) }]
            [$( $field = [$place] ),*]
        }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident, width: [$( $text:literal = $width:ident $opcode:literal ),+ $(,)?] {
            $( $(#[$fmeta:meta])* $field:ident: $ty:ty = $places:expr ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            /// The width decoded; for `encode`, the narrowest to use.
            pub width: super::CdbWidth,
            $( $(#[$fmeta])* pub $field: $ty, )*
            /// The CONTROL byte, the last of the CDB.
            pub control: super::Control,
        }

        cdb! {
            @codec $name () [width] [$( { $text, $width, $opcode, None } ),+] [$( $field = $places ),*]
        }
    };
    (@action) => { None };
    (@action $action:literal) => { Some($action) };
    (@width $self:ident ($width:expr)) => { $width };
    (@width $self:ident ()) => { $self.width };
    (
        @codec $name:ident $narrowest:tt [$($width_field:ident)?]
        [$( { $text:literal, $width:ident, $opcode:literal, $action:expr } ),+]
        [$( $field:ident = $places:expr ),*]
    ) => {
        impl $name {
            const FIELDS: usize = { let names: &[&str] = &[$( stringify!($field) ),*]; names.len() };
            const WIDTHS: usize = [$( $opcode ),+].len();
            const TABLE: super::field::Table<{ Self::WIDTHS }, { Self::FIELDS }> = super::field::Table {
                forms: [$( super::field::Form {
                    name: $text,
                    width: super::CdbWidth::$width,
                    opcode: $opcode,
                    action: $action,
                } ),+],
                places: [$( $places ),*],
            };

            pub(super) const FORMS: &[super::field::Form] = &Self::TABLE.forms;

            /// Decodes the CDB. Reserved bits and bytes past it are not looked at.
            ///
            /// In `WrongKind`, a code of two bytes is an operation code and a service action.
            pub fn decode(cdb: &[u8]) -> Result<Self, crate::DecodeError> {
                $( if const { Self::TABLE.layout(Self::TABLE.column($opcode)) }.form.begins(cdb) {
                    return Self::decode_column::<{ Self::TABLE.column($opcode) }>(cdb);
                } )+
                Err(Self::TABLE.refusal(cdb))
            }

            /// The CDB. A value wider than its field is cut to the field's width, but where a command has
            /// several widths, the first one from `width` on is taken that cuts nothing.
            #[inline(always)]
            pub fn encode(&self) -> super::Cdb {
                let narrowest = cdb!(@width self $narrowest);
                let mut longest = None;
                $( if super::CdbWidth::$width >= narrowest {
                    let (cdb, says_all) = self.encode_column::<{ Self::TABLE.column($opcode) }>();
                    if says_all {
                        return cdb;
                    }
                    longest = Some(cdb);
                } )+
                longest.unwrap_or_else(|| self.encode_column::<{ Self::WIDTHS - 1 }>().0)
            }

            #[inline]
            fn decode_column<const COLUMN: usize>(cdb: &[u8]) -> Result<Self, crate::DecodeError> {
                let super::field::Layout { form, places } = const { Self::TABLE.layout(COLUMN) };
                let [$( $field ),*] = places;
                let whole = form.whole(cdb)?;
                Ok(Self {
                    $( $width_field: form.width, )?
                    $( $field: super::field::Value::from_bits($field.get(whole)), )*
                    control: form.control(whole),
                })
            }

            /// The CDB of a column, and whether it says every value.
            #[inline]
            fn encode_column<const COLUMN: usize>(&self) -> (super::Cdb, bool) {
                let super::field::Layout { form, places } = const { Self::TABLE.layout(COLUMN) };
                let [$( $field ),*] = places;
                let whole = form.start(self.control);
                $( let whole = whole.with($field.set(super::field::Value::into_bits(self.$field))); )*
                let whole = whole.cut(form.width);
                let says_all = true;
                $( let says_all =
                    says_all && $field.get(whole) == super::field::Value::into_bits(self.$field); )*
                (whole.cdb(form.width), says_all)
            }

            /// The name of the command, of the width that it has.
            pub fn name(&self) -> &'static str {
                Self::TABLE.name(cdb!(@width self $narrowest))
            }

            /// The CDB USAGE DATA of REPORT SUPPORTED OPERATION CODES for a unit that looks at every field
            /// (SPC-5): the operation code, then a one for every bit that has a meaning. `None` if
            /// `opcode` is not one of this command's.
            pub fn usage(opcode: u8) -> Option<super::Cdb> {
                Self::TABLE.usage(opcode)
            }
        }

        impl Default for $name {
            /// Every field zero.
            #[inline]
            fn default() -> Self {
                Self {
                    $( $width_field: super::CdbWidth::default(), )?
                    $( $field: super::field::Value::from_bits(0), )*
                    control: super::Control(0),
                }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.name())?;
                $( super::field::Value::show(self.$field, stringify!($field), f)?; )*
                super::field::Value::show(self.control.0, "control", f)
            }
        }
    };
}

/// Asserts that a literal CDB and a value are each other's encoding and decoding, what the value's text is,
/// that every truncated length is an error, and that another operation code is another kind.
#[cfg(test)]
macro_rules! assert_both_ways {
    ($name:ident { $($field:ident: $value:expr),* $(,)? }, $cdb:expr, $text:expr $(,)?) => {{
        extern crate std;
        // Fields not named are zero.
        #[allow(clippy::needless_update, reason = "some commands have few fields")]
        let (command, mut cdb) = ($name { $($field: $value,)* ..$name::default() }, $cdb);
        assert_eq!($name::decode(&cdb), Ok(command));
        assert_eq!(command.encode()[..], cdb);
        assert_eq!(std::string::ToString::to_string(&command), $text);
        assert!(matches!($name::decode(&[]), Err(crate::DecodeError::Truncated { got: 0, .. })));
        for len in 1..cdb.len() {
            let error = crate::DecodeError::Truncated { needed: cdb.len(), got: len };
            assert_eq!($name::decode(&cdb[..len]), Err(error));
        }
        cdb[0] = 0xff;
        assert!(matches!($name::decode(&cdb), Err(crate::DecodeError::WrongKind { .. })));
    }};
}
