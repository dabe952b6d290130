//! Text from anywhere, made harmless in HTML.
//!
//! Names of devices, files and workloads are what somebody else has chosen. Characters that HTML gives a meaning to become references, in
//! text and in attributes alike; control characters, which HTML forbids, and those that turn the direction of writing, which could make a
//! line say something else, become U+FFFD.

/// The same as text or as the value of an attribute in quotation marks.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(harmless(sign)),
        }
    }
    out
}

/// The same text without what no markup may hold; for a library that escapes the rest.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(harmless).collect()
}

const fn harmless(sign: char) -> char {
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
        let harmless = "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot;x&quot;";
        assert_eq!(escape(hostile), harmless);
    }

    #[test]
    fn what_nobody_sees_is_shown() {
        assert_eq!(escape("a\0b\u{1b}[31m\u{202e}c"), "a\u{fffd}b\u{fffd}[31m\u{fffd}c");
        assert_eq!(clean("a\u{85}<"), "a\u{fffd}<");
    }

    #[test]
    fn plain_text_stays() {
        assert_eq!(escape("Festplatte für 4 KiB, µs\n"), "Festplatte für 4 KiB, µs\n");
    }
}
