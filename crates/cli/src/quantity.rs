//! Sizes, ids and names as people write them.

use std::time::Duration;
use units::ByteCount;

/// A size: plain bytes, or with `K`, `M`, `G` or `T` (binary), as in `512`, `64K`, `8G`.
pub(crate) fn size(text: &str) -> Result<ByteCount, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let suffix = text[digits.len()..].to_ascii_uppercase();
    let shift = match suffix.trim_end_matches("IB").trim_end_matches('B') {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => {
            return Err(format!(
                "'{text}' is not a size; write bytes, or a number with K, M, G or T, powers of 1024"
            ));
        }
    };
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(format!("'{text}' does not begin with a whole number"));
    }
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    let bytes = number.ok_or_else(|| format!("'{text}' is more than 64 bits can say"))?;
    Ok(ByteCount(bytes))
}

/// So many bytes of each transfer, as `--snap` has them; 0 is all of them.
pub(crate) fn snap(text: &str) -> Result<u32, String> {
    let ByteCount(bytes) = size(text)?;
    Ok(if bytes == 0 { u32::MAX } else { u32::try_from(bytes).unwrap_or(u32::MAX) })
}

/// Bytes of a file of a capture: a smaller one would hold little but what each begins with, and there would be thousands.
const CAPTURE_BYTES_MIN: u64 = 64 << 10;

/// A size at which another file of a capture begins.
pub(crate) fn capture_size(text: &str) -> Result<ByteCount, String> {
    let size = size(text)?;
    if size.0 < CAPTURE_BYTES_MIN {
        return Err(format!("'{text}' makes a file of every few transfers; 64 KiB is the least"));
    }
    Ok(size)
}

/// A span of time in seconds, a fraction or whole, up to a day.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    const DAY: f64 = 86_400.0;
    let wrong = || format!("'{text}' is not a number of seconds up to a day");
    let seconds = text.parse().ok().filter(|seconds| (0.0..=DAY).contains(seconds)).ok_or_else(wrong)?;
    Ok(Duration::from_secs_f64(seconds))
}

/// The same, of which there is some.
pub(crate) fn some_seconds(text: &str) -> Result<Duration, String> {
    let span = seconds(text)?;
    if span.is_zero() { Err(format!("'{text}' seconds are none at all")) } else { Ok(span) }
}

/// Percent of something, a fraction or whole: more than none, 100 at most.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|percent| (f64::MIN_POSITIVE..=100.0).contains(percent));
    percent.ok_or_else(|| format!("'{text}' is not a percentage above 0, up to 100"))
}

/// A span of virtual time in seconds, a fraction or whole, a millisecond to an hour.
pub(crate) fn span(text: &str) -> Result<units::Duration, String> {
    let wrong = || format!("'{text}' is not a number of seconds from 0.001 to 3600");
    let seconds: f64 =
        text.parse().ok().filter(|seconds| (0.001..=3600.0).contains(seconds)).ok_or_else(wrong)?;
    Ok(units::Duration::from_us((seconds * 1e6) as u64))
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

/// A name that the host is told: printable ASCII, `MAX` characters at most (SPC-5, ASCII data fields).
pub(crate) fn text<const MAX: usize>(text: &str) -> Result<String, String> {
    if !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err(format!("'{text}' is not all printable ASCII, and a host is told nothing else"));
    }
    if text.len() > MAX {
        return Err(format!("'{text}' has {} characters where {MAX} are the most", text.len()));
    }
    Ok(text.to_owned())
}

/// A serial number: there has to be one (Bulk-Only Transport 1.0 clause 4.1.1).
pub(crate) fn serial(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err(
            "a drive has to have a serial number; without this option one is made of the image's path".into(),
        );
    }
    self::text::<SERIAL_CHARACTERS_MAX>(text)
}

/// Streams of a bulk pipe: a power of two up to 256, since the descriptor tells an exponent (USB 3.2 table 9-29).
pub(crate) fn streams(text: &str) -> Result<u16, String> {
    let wrong = || format!("'{text}' is not a number of streams; it can be 2, 4, 8, 16, 32, 64, 128 or 256");
    let count: u16 = text.parse().map_err(|_| wrong())?;
    if count == 1 {
        return Err("one stream cannot be told: the descriptor says a power of two, and a power of 0 says that there are \
                    none (USB 3.2 table 9-29); 2 is the least, and UAS without streams is --speed high"
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
        assert!(size("8X").is_err());
        assert!(size("G").is_err());
        assert!(size("16777216T").is_err());
        assert!(size("-1").is_err());
    }

    #[test]
    fn files_of_a_capture_have_room() {
        assert_eq!(capture_size("64K"), Ok(ByteCount(65_536)));
        for wrong in ["0", "1", "65535"] {
            assert!(capture_size(wrong).unwrap_err().contains("64 KiB is the least"), "{wrong}");
        }
    }

    #[test]
    fn seconds_may_have_a_fraction() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["-1", "NaN", "inf", "86401", "1s"] {
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
        assert!(text::<8>("ACME Inc.").unwrap_err().contains("9 characters where 8 are the most"));
        assert!(text::<8>("caf\u{e9}").is_err());
        assert!(text::<8>("a\tb").is_err());
    }

    #[test]
    fn a_serial_number_has_to_be_one() {
        assert_eq!(serial("0123456789AB"), Ok("0123456789AB".to_owned()));
        assert!(serial("").unwrap_err().contains("has to have a serial number"));
        assert!(serial(" ").is_err());
        assert!(serial(&"x".repeat(120)).is_ok());
        assert!(serial(&"x".repeat(121)).is_err());
    }

    #[test]
    fn streams_are_a_power_of_two() {
        assert_eq!(streams("32"), Ok(32));
        assert!(streams("1").unwrap_err().contains("2 is the least"));
        for wrong in ["0", "1", "33", "512", "many"] {
            assert!(streams(wrong).is_err(), "{wrong}");
        }
    }
}
