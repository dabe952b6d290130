//! Sizes, times, queue depths, ids and names as people write them.
//!
//! Each parser refuses a value with the value itself and what is allowed. Suffixes of sizes are powers of 1024.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;
use units::ByteCount;
use workload::DEPTH_MAX;

/// Powers of 1024 that a size can have.
const SUFFIXES: [(&str, u32); 5] = [("", 0), ("K", 10), ("M", 20), ("G", 30), ("T", 40)];

/// A parser of whole numbers from `least` to `most`.
pub(crate) fn within<T: FromStr + PartialOrd + Display + Copy>(
    least: T,
    most: T,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("use a whole number from {least} to {most}"))
    }
}

/// A size: plain bytes, or with `K`, `M`, `G` or `T` (binary), whole or with a fraction, as in `512`, `64K`, `1.5G`.
pub(crate) fn size(text: &str) -> Result<ByteCount, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let suffix = text[number.len()..].to_ascii_uppercase();
    let suffix = suffix.trim_end_matches("IB").trim_end_matches('B');
    let shift = SUFFIXES.iter().find(|(name, _)| *name == suffix).map(|(_, shift)| *shift);
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && number.bytes().any(|byte| byte.is_ascii_digit());
    let (Some(shift), true) = (shift, is_number) else {
        return Err(format!(
            "'{text}' is not a size; write bytes, or a number with K, M, G or T, powers of 1024"
        ));
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') {
        return Err(format!("'{text}' has two decimal points; write a size as in 64K or 1.5G"));
    }
    let most = u64::MAX >> shift;
    let too_large = || format!("'{text}' is too large; the largest size is {most}{suffix}");
    let digits = if whole.is_empty() { "0" } else { whole };
    let whole: u64 = digits.parse().ok().filter(|whole| *whole <= most).ok_or_else(too_large)?;
    let rest = part_of_unit(fraction, shift).ok_or_else(|| {
        format!("'{text}' is not a whole number of bytes; use a smaller unit, or a power of 1/2 as in 1.5G or 0.25M")
    })?;
    (whole << shift).checked_add(rest).map(ByteCount).ok_or_else(too_large)
}

/// Decimal places of a size at most: those of a byte of a TiB.
const PLACES_MAX: usize = 40;

/// The bytes of digits behind the point, in a unit of 2^`shift` bytes; `None` if they are not whole.
fn part_of_unit(fraction: &str, shift: u32) -> Option<u64> {
    let digits = fraction.trim_end_matches('0');
    if digits.len() > PLACES_MAX {
        return None;
    }
    // One doubling of the fraction for each bit: what is carried over are the bits of the result.
    let mut fraction: Vec<u8> = digits.bytes().map(|digit| digit - b'0').collect();
    let mut bytes = 0;
    for _ in 0..shift {
        let mut carry = 0;
        for digit in fraction.iter_mut().rev() {
            let doubled = *digit * 2 + carry;
            (*digit, carry) = (doubled % 10, doubled / 10);
        }
        bytes = bytes * 2 + u64::from(carry);
    }
    fraction.iter().all(|digit| *digit == 0).then_some(bytes)
}

/// The size of an image file: a file's length is a signed 64-bit number of bytes.
pub(crate) fn image_size(text: &str) -> Result<ByteCount, String> {
    let size = size(text)?;
    if i64::try_from(size.0).is_err() {
        return Err(format!("'{text}' is too large for a file; the largest size is {}T", i64::MAX >> 40));
    }
    Ok(size)
}

/// Bytes of each transfer for `--snap`; 0 is all.
pub(crate) fn snap(text: &str) -> Result<u32, String> {
    let ByteCount(bytes) = size(text)?;
    Ok(if bytes == 0 { u32::MAX } else { u32::try_from(bytes).unwrap_or(u32::MAX) })
}

/// Minimum of a capture file; smaller ones would contain little but their headers.
const CAPTURE_BYTES_MIN: u64 = 64 << 10;

/// The size at which a capture continues in a new file.
pub(crate) fn capture_size(text: &str) -> Result<ByteCount, String> {
    let size = size(text)?;
    if size.0 < CAPTURE_BYTES_MIN {
        return Err(format!("'{text}' is too small for a capture file; the minimum is 64 KiB"));
    }
    Ok(size)
}

/// Units of time, in seconds. A number without one is of the option's own unit.
const TIME_UNITS: [(&str, f64); 6] =
    [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("min", 60.0), ("h", 3600.0)];

/// A time as a number, whole or with a fraction, and its unit; without one, in seconds of `unit_s`.
fn time(text: &str, unit_s: f64) -> Option<f64> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let suffix = &text[number.len()..];
    let unit = TIME_UNITS.iter().find(|(name, _)| *name == suffix).map(|(_, unit)| *unit);
    let unit = if suffix.is_empty() { Some(unit_s) } else { unit };
    Some(number.parse::<f64>().ok().filter(|number| number.is_finite())? * unit?)
}

/// A time in seconds or with its unit, up to a day: `5`, `0.5`, `500ms`, `5s`, `2min`.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    const DAY: f64 = 86_400.0;
    let wrong = || {
        format!(
            "'{text}' is not a time up to a day; write seconds, or a number with us, ms, s, min or h, as in 5s"
        )
    };
    let seconds = time(text, 1.0).filter(|seconds| (0.0..=DAY).contains(seconds)).ok_or_else(wrong)?;
    Ok(Duration::from_secs_f64(seconds))
}

/// The same, longer than 0.
pub(crate) fn some_seconds(text: &str) -> Result<Duration, String> {
    let span = seconds(text)?;
    if span.is_zero() { Err(format!("'{text}' is not longer than 0")) } else { Ok(span) }
}

/// A time in microseconds or with its unit, up to a second: `60`, `60us`, `1.5ms`.
pub(crate) fn microseconds(text: &str) -> Result<u32, String> {
    let wrong = || {
        format!(
            "'{text}' is not a time up to a second; write whole microseconds, or a number with us, ms or s, as in 1.5ms"
        )
    };
    let seconds = time(text, 1e-6).filter(|seconds| (0.0..=1.0).contains(seconds)).ok_or_else(wrong)?;
    let microseconds = seconds * 1e6;
    if (microseconds - microseconds.round()).abs() > 1e-3 {
        return Err(wrong());
    }
    Ok(microseconds.round() as u32)
}

/// A percentage above 0, up to 100, whole or with a fraction.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|percent| (f64::MIN_POSITIVE..=100.0).contains(percent));
    percent.ok_or_else(|| format!("'{text}' is not a percentage above 0, up to 100"))
}

/// A span of virtual time in seconds or with its unit, a millisecond to an hour.
pub(crate) fn span(text: &str) -> Result<units::Duration, String> {
    let wrong = || {
        format!(
            "'{text}' is not a time from 0.001 s to 3600 s; write seconds, or a number with ms, s, min or h, as in 5s"
        )
    };
    let seconds = time(text, 1.0).filter(|seconds| (0.001..=3600.0).contains(seconds)).ok_or_else(wrong)?;
    Ok(units::Duration::from_us((seconds * 1e6).round() as u64))
}

/// A range of numbers, `FIRST..LAST` or `FIRST-LAST`; `None` if a text is none.
pub(crate) fn range(text: &str) -> Option<(&str, &str)> {
    text.split_once("..")
        .or_else(|| text.split_once('-'))
        .filter(|(first, last)| !first.is_empty() && !last.is_empty())
}

/// The numbers of a range that doubles from its first to its last.
///
/// # Errors
/// If it does not reach its last number, or begins with 0 or above it.
pub(crate) fn doubled(first: u64, last: u64) -> Result<Vec<u64>, String> {
    if first == 0 || first > last {
        return Err(format!(
            "a range that doubles goes from 1 or more to a larger number, not from {first} to {last}"
        ));
    }
    let all: Vec<u64> = std::iter::successors(Some(first), |number| number.checked_mul(2))
        .take_while(|number| *number <= last)
        .collect();
    match all.last() {
        Some(end) if *end < last => Err(format!(
            "the range doubles from {first} and does not reach {last}: its numbers are {}; end it at {end}{}, or list each number",
            all.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
            end.checked_mul(2).map_or_else(String::new, |next| format!(" or {next}")),
        )),
        _ => Ok(all),
    }
}

/// Queue depths: a number, or a range that doubles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Depths(pub(crate) Vec<u16>);

/// All of them, one after the other.
pub(crate) fn flat(depths: &[Depths]) -> Vec<u16> {
    depths.iter().flat_map(|Depths(depths)| depths).copied().collect()
}

/// Queue depths, as `32`, `1..8` or `1-8`: the range is 1, 2, 4 and 8.
pub(crate) fn depths(text: &str) -> Result<Depths, String> {
    let one = |text: &str| {
        let wrong = |is| format!("'{text}' is {is}; write a whole number from 1 to {DEPTH_MAX}");
        let depth: u64 = text.parse().map_err(|_| wrong("not a queue depth"))?;
        let depth = u16::try_from(depth).ok().filter(|depth| (1..=DEPTH_MAX).contains(depth));
        depth.ok_or_else(|| wrong("out of range"))
    };
    let Some((first, last)) = range(text) else { return Ok(Depths(vec![one(text)?])) };
    let numbers = doubled(one(first)?.into(), one(last)?.into())?;
    Ok(Depths(numbers.into_iter().filter_map(|number| u16::try_from(number).ok()).collect()))
}

/// Threads: one or more.
pub(crate) fn threads(text: &str) -> Result<u16, String> {
    let wrong = || {
        format!(
            "'{text}' is not a number of threads; write 1 or more, or leave --threads out for one per processor"
        )
    };
    text.parse().ok().filter(|threads| *threads > 0).ok_or_else(wrong)
}

/// A USB id: `VID:PID`, four hexadecimal digits each.
pub(crate) fn usb_id(text: &str) -> Result<(u16, u16), String> {
    let wrong = || format!("'{text}' is not a USB id; write VID:PID in hexadecimal, as in 174c:55aa");
    let (vendor, product) = text.split_once(':').ok_or_else(wrong)?;
    let parse = |digits: &str| u16::from_str_radix(digits, 16).map_err(|_| wrong());
    Ok((parse(vendor)?, parse(product)?))
}

/// Characters of a serial number: a string descriptor holds 126, and further units append their number.
const SERIAL_CHARACTERS_MAX: usize = 120;

/// A name that the host reads: printable ASCII, at most `MAX` characters (SPC-5, ASCII data fields).
pub(crate) fn text<const MAX: usize>(text: &str) -> Result<String, String> {
    if !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err(format!("'{text}' is not printable ASCII, which SCSI requires"));
    }
    if text.len() > MAX {
        return Err(format!("'{text}' has {} characters (maximum {MAX})", text.len()));
    }
    Ok(text.to_owned())
}

/// A serial number: there has to be one (Bulk-Only Transport 1.0 clause 4.1.1).
pub(crate) fn serial(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err(
            "a BOT drive needs a serial number; without --serial, it is derived from the path of the image"
                .into(),
        );
    }
    self::text::<SERIAL_CHARACTERS_MAX>(text)
}

/// Streams of a bulk pipe: a power of two up to 256, since the descriptor has the exponent (USB 3.2 table 9-29).
pub(crate) fn streams(text: &str) -> Result<u16, String> {
    let wrong = || format!("'{text}' is not a valid number of streams: use 2, 4, 8, 16, 32, 64, 128 or 256");
    let count: u16 = text.parse().map_err(|_| wrong())?;
    if count == 1 {
        return Err("1 stream is not possible: the descriptor has an exponent of two, and 0 means no streams (USB 3.2 table 9-29); \
                    the minimum is 2; for UAS without streams, use --speed high"
            .into());
    }
    if count.is_power_of_two() && (2..=256).contains(&count) { Ok(count) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary() {
        assert_eq!(size("512"), Ok(ByteCount(512)));
        assert_eq!(size("64k"), Ok(ByteCount(65_536)));
        assert_eq!(size("8GiB"), Ok(ByteCount(8_589_934_592)));
        for wrong in ["8X", "G", "-1", ".", ".K", "1e3", ""] {
            assert!(size(wrong).unwrap_err().contains("is not a size"), "{wrong}");
        }
    }

    #[test]
    fn a_size_may_have_a_fraction_of_whole_bytes() {
        for (text, bytes) in [
            ("1.5G", 1_610_612_736),
            ("0.5M", 524_288),
            (".5K", 512),
            ("1.K", 1024),
            ("4.000K", 4096),
            ("0.0009765625K", 1),
            ("512.0", 512),
        ] {
            assert_eq!(size(text), Ok(ByteCount(bytes)), "{text}");
        }
        for wrong in ["0.5", "1.3K", "0.00048828125K", "1.1G"] {
            assert!(size(wrong).unwrap_err().contains("not a whole number of bytes"), "{wrong}");
        }
        assert!(size("1.2.3K").unwrap_err().contains("two decimal points"));
        let long = format!("0.{}1G", "0".repeat(100));
        assert!(size(&long).unwrap_err().contains("not a whole number of bytes"));
    }

    #[test]
    fn a_size_that_is_too_large_says_which_is_the_largest() {
        assert_eq!(size("16777216T").unwrap_err(), "'16777216T' is too large; the largest size is 16777215T");
        assert_eq!(size("16777215.5T"), Ok(ByteCount(u64::MAX - (1 << 39) + 1)));
        assert_eq!(size("18446744073709551615"), Ok(ByteCount(u64::MAX)));
        let refusal = size("18446744073709551616").unwrap_err();
        assert_eq!(refusal, "'18446744073709551616' is too large; the largest size is 18446744073709551615");
        assert_eq!(
            image_size("16000000T").unwrap_err(),
            "'16000000T' is too large for a file; the largest size is 8388607T"
        );
        assert_eq!(image_size("8388607T"), Ok(ByteCount(8_388_607 << 40)));
    }

    #[test]
    fn a_range_that_doubles_reaches_its_end_or_is_refused() {
        for text in ["1..8", "1-8"] {
            assert_eq!(depths(text), Ok(Depths(vec![1, 2, 4, 8])));
        }
        assert_eq!(depths("3..12"), Ok(Depths(vec![3, 6, 12])));
        assert_eq!(depths("7..7"), Ok(Depths(vec![7])));
        let refusal = depths("1..5").unwrap_err();
        assert!(refusal.contains("does not reach 5: its numbers are 1, 2, 4; end it at 4 or 8"), "{refusal}");
        for wrong in ["0", "257", "x", "1..", "..8", "-8", "8..1", "0..8", "1..x", "1..512"] {
            assert!(depths(wrong).is_err(), "{wrong}");
        }
        assert!(
            depths("x").unwrap_err().contains("'x' is not a queue depth; write a whole number from 1 to 256")
        );
        assert!(
            depths("5000")
                .unwrap_err()
                .contains("'5000' is out of range; write a whole number from 1 to 256")
        );
    }

    #[test]
    fn threads_are_one_or_more() {
        assert_eq!(threads("3"), Ok(3));
        for wrong in ["0", "x", "-1", "65536"] {
            let refusal = threads(wrong).unwrap_err();
            assert!(refusal.starts_with(&format!("'{wrong}' is not a number of threads; write 1 or more")));
        }
    }

    #[test]
    fn times_have_the_unit_of_their_option_or_one_that_they_name() {
        for (text, millis) in
            [("5s", 5000), ("500ms", 500), ("2min", 120_000), ("1.5h", 5_400_000), ("250us", 0)]
        {
            let time = seconds(text).unwrap();
            assert_eq!(time.as_millis(), millis, "{text}");
        }
        assert_eq!(span("20ms"), Ok(units::Duration::from_ms(20)));
        assert_eq!(span("0.001"), Ok(units::Duration::from_ms(1)));
        assert!(span("0.5ms").is_err() && span("2h").is_err());
        let micros = ["60", "60us", "1.5ms", "1s", "0"].map(|text| microseconds(text).unwrap());
        assert_eq!(micros, [60, 60, 1500, 1_000_000, 0]);
        for wrong in ["0.5", "1.1s", "x", "-1"] {
            assert!(microseconds(wrong).unwrap_err().contains("whole microseconds"), "{wrong}");
        }
    }

    #[test]
    fn files_of_a_capture_have_room() {
        assert_eq!(capture_size("64K"), Ok(ByteCount(65_536)));
        for wrong in ["0", "1", "65535"] {
            assert!(capture_size(wrong).unwrap_err().contains("the minimum is 64 KiB"), "{wrong}");
        }
    }

    #[test]
    fn seconds_may_have_a_fraction() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["-1", "NaN", "inf", "86401", "1d", "s", "1 s", "25h"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn usb_ids_are_hexadecimal() {
        assert_eq!(usb_id("174c:55aa"), Ok((0x174c, 0x55aa)));
        assert!(usb_id("174c").is_err());
        assert!(usb_id("174c:zz").is_err());
    }

    #[test]
    fn names_are_printable_and_fit_their_field() {
        assert_eq!(text::<8>("ACME Inc"), Ok("ACME Inc".to_owned()));
        assert_eq!(text::<8>(""), Ok(String::new()));
        assert!(text::<8>("ACME Inc.").unwrap_err().contains("9 characters (maximum 8)"));
        assert!(text::<8>("caf\u{e9}").is_err());
        assert!(text::<8>("a\tb").is_err());
    }

    #[test]
    fn a_serial_number_has_to_be_one() {
        assert_eq!(serial("0123456789AB"), Ok("0123456789AB".to_owned()));
        assert!(serial("").unwrap_err().contains("needs a serial number"));
        assert!(serial(" ").is_err());
        assert!(serial(&"x".repeat(120)).is_ok());
        assert!(serial(&"x".repeat(121)).is_err());
    }

    #[test]
    fn streams_are_a_power_of_two() {
        assert_eq!(streams("32"), Ok(32));
        assert!(streams("1").unwrap_err().contains("the minimum is 2"));
        for wrong in ["0", "1", "33", "512", "many"] {
            assert!(streams(wrong).is_err(), "{wrong}");
        }
    }
}
