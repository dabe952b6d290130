//! Escapes foreign text for HTML.
//!
//! Names of devices, files and workloads are not under our control. Characters with a meaning in
//! HTML become character references, in text and attributes alike; control characters, which HTML
//! forbids, and bidirectional overrides, which could reorder a line, become U+FFFD.

/// Escapes text or the value of a quoted attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(sanitize(sign)),
        }
    }
    out
}

/// Replaces characters that no markup may contain, for a library that escapes the rest.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(sanitize).collect()
}

const fn sanitize(sign: char) -> char {
    match sign {
        '\n' | '\t' => sign,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => char::REPLACEMENT_CHARACTER,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
        '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
        _ => sign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_html_gives_a_meaning_to_becomes_a_reference() {
        let hostile = "<script>alert('1')</script> & \"x\"";
        let escaped = "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot;x&quot;";
        assert_eq!(escape(hostile), escaped);
    }

    #[test]
    fn invisible_characters_are_replaced() {
        assert_eq!(escape("a\0b\u{1b}[31m\u{202e}c"), "a\u{fffd}b\u{fffd}[31m\u{fffd}c");
        assert_eq!(clean("a\u{85}<"), "a\u{fffd}<");
    }

    #[test]
    fn plain_text_stays() {
        assert_eq!(escape("Festplatte für 4 KiB, µs\n"), "Festplatte für 4 KiB, µs\n");
    }
}
