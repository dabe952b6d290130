//! The byte work of the operations that are more than a read or a write: compare, or, repeat a pattern.
//!
//! Memory does them in place; a file does them on chunks that it has read. Nothing here knows where the bytes lie.

/// Offset of the first byte in which the two differ. What one of them has beyond the other's end does not count.
pub(super) fn first_difference(left: &[u8], right: &[u8]) -> Option<usize> {
    let len = left.len().min(right.len());
    // Equal is the usual case, and comparing whole slices is a memcmp.
    if left.get(..len) == right.get(..len) {
        return None;
    }
    left.iter().zip(right).position(|(left, right)| left != right)
}

/// Offset of the first byte in which `bytes` differs from `pattern`, repeated.
pub(super) fn first_difference_from_pattern(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    let mut chunks = bytes.chunks(pattern.len().max(1)).enumerate();
    chunks.find_map(|(index, chunk)| {
        first_difference(chunk, pattern).map(|offset| index * pattern.len() + offset)
    })
}

/// Ors `source` into `bytes` (ORWRITE, SBC-4 clause 5.10).
pub(super) fn or_into(bytes: &mut [u8], source: &[u8]) {
    for (byte, or) in bytes.iter_mut().zip(source) {
        *byte |= or;
    }
}

/// Fills `bytes` with `pattern`, repeated.
pub(super) fn fill_with_pattern(bytes: &mut [u8], pattern: &[u8]) {
    for chunk in bytes.chunks_mut(pattern.len().max(1)) {
        let len = chunk.len().min(pattern.len());
        chunk[..len].copy_from_slice(&pattern[..len]);
    }
}

/// Whether there is nothing but zeroes.
pub(super) fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_reported() {
        assert_eq!(first_difference(b"abcdef", b"abcdef"), None);
        assert_eq!(first_difference(b"abcdef", b"abXdeY"), Some(2));
        assert_eq!(first_difference(b"abc", b"abcdef"), None);
    }

    #[test]
    fn a_difference_from_a_pattern_counts_from_the_start() {
        assert_eq!(first_difference_from_pattern(b"abababab", b"ab"), None);
        assert_eq!(first_difference_from_pattern(b"ababaXab", b"ab"), Some(5));
        assert_eq!(first_difference_from_pattern(b"abc", b""), None);
    }

    #[test]
    fn a_pattern_fills_and_bits_are_ored() {
        let mut bytes = [0; 5];
        fill_with_pattern(&mut bytes, &[1, 2]);
        assert_eq!(bytes, [1, 2, 1, 2, 1]);
        or_into(&mut bytes, &[0xf0, 0x0f]);
        assert_eq!(bytes, [0xf1, 0x0f, 1, 2, 1]);
    }
}
