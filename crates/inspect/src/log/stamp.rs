//! The time of a line of the kernel's log, in seconds, as far as differences between lines need it.
//!
//! `dmesg` writes seconds since boot, `dmesg -T` and journals a date. A date counts as its day of the month and time of
//! day: logs that cross the end of a month have no difference there. Left out: `dmesg -d`, whose differences have no start.

/// Letters of a line that may hold its time.
const HEAD_BYTES_MAX: usize = 48;

/// Seconds, of which only differences mean something unless they are those since boot.
pub(crate) fn seconds(line: &str) -> Option<f64> {
    let mut end = line.len().min(HEAD_BYTES_MAX);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    let head = line.get(..end)?;
    since_boot(head).or_else(|| of_date(head))
}

/// Seconds since boot, if the line has those.
pub(crate) fn since_boot(line: &str) -> Option<f64> {
    // Times come first: brackets further on are a disk's name, or text.
    line.split('[').skip(1).take(2).find_map(|part| {
        let digits = part.split(']').next()?.trim();
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        digits.parse().ok().filter(|_| is_number && digits.contains('.'))
    })
}

fn of_date(head: &str) -> Option<f64> {
    const DAY: f64 = 86_400.0;
    let colon = head.match_indices(':').map(|(at, _)| at).find(|at| time_at(head, *at).is_some())?;
    let time = time_at(head, colon)?;
    let before = head.get(..colon.checked_sub(2)?)?.trim_end_matches(['T', ' ']);
    let digits: String = before.chars().rev().take_while(char::is_ascii_digit).collect();
    let day: f64 = digits.chars().rev().collect::<String>().parse().unwrap_or(0.0);
    Some(day * DAY + time)
}

/// The time of day whose first colon is there.
fn time_at(head: &str, colon: usize) -> Option<f64> {
    let number = |from: usize, to: usize| head.get(from..to)?.parse::<u32>().ok();
    let hours = number(colon.checked_sub(2)?, colon)?;
    let minutes = number(colon + 1, colon + 3)?;
    head.get(colon + 3..=colon + 3).filter(|sign| *sign == ":")?;
    let rest: String =
        head.get(colon + 4..)?.chars().take_while(|sign| sign.is_ascii_digit() || *sign == '.').collect();
    let seconds: f64 = rest.trim_end_matches('.').parse().ok()?;
    (hours < 24 && minutes < 60 && seconds < 61.0).then(|| f64::from(hours * 60 + minutes) * 60.0 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_time_in_each_format() {
        assert_eq!(seconds("[   12.500000] usb 2-1: x"), Some(12.5));
        assert_eq!(seconds("<6>[   12.500000][    T1] usb 2-1: x"), Some(12.5));
        let day = 26.0 * 86_400.0 + 9.0 * 3600.0 + 23.0 * 60.0;
        for line in [
            "Nov 26 09:23:06 host kernel: usb 2-1: x",
            "[Thu Nov 26 09:23:06 2026] usb 2-1: x",
            "2026-11-26T09:23:06+00:00 host kernel: x",
            "2026-11-26 09:23:06 host kernel: x",
        ] {
            assert_eq!(seconds(line), Some(day + 6.0), "{line}");
        }
        assert_eq!(seconds("usb 2-1: x"), None);
        assert_eq!(seconds("[  +0.000012] usb 2-1: x"), None);
        assert_eq!(seconds("é [x] 1:2"), None);
    }
}
