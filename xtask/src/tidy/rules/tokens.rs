//! Rules on tokens: they see into macro bodies, where clippy and syntax do not look.

use crate::tidy::{
    finding::{Finding, Rule},
    source::{Source, Token},
};

/// Files in which `unsafe` is allowed: the places that talk to the kernel in its own memory layouts, the memory that a
/// device or a virtual machine writes to, a hint and a store of the processor that have no safe names, and `malloc_trim`.
const UNSAFE_PLACES: &[&str] = &[
    "crates/drive/src/medium/ahead.rs",
    "crates/drive/src/medium/file/uring.rs",
    "crates/drive/src/medium/stream.rs",
    "crates/server/src/net/allocator.rs",
    "crates/server/src/vfio_user/mapping.rs",
    "crates/usb/src/usbfs/kernel.rs",
    "crates/usb/src/usbfs/kernel/",
    "crates/usb/src/vfio/kernel/",
    "crates/usb/src/host_bus/buffers.rs",
];

/// No `unwrap` and its like in libraries; `expect("why it cannot fail")` where the reason is near.
pub(super) fn panics(source: &Source) -> Vec<Finding> {
    const FORBIDDEN: &[(&[&str], &str)] = &[
        (&[".", "unwrap", "("], "return an error, or `expect(\"why it cannot fail\")`"),
        (&["todo", "!"], "write it, or leave the item out"),
        (&["unimplemented", "!"], "answer with a typed refusal"),
        (&["dbg", "!"], "take it out"),
    ];
    if !source.is_library() {
        return Vec::new();
    }
    let hits = FORBIDDEN.iter().flat_map(|(pattern, advice)| {
        lines_of(source, pattern).map(move |line| (line, format!("{}: {advice}", pattern.concat())))
    });
    hits.filter(|(line, _)| !source.is_test_line(*line))
        .map(|(line, advice)| Finding::new(&source.path, line, Rule::Panic, advice))
        .collect()
}

/// `unsafe` lives in the places that are named, tests included.
pub(super) fn unsafety(source: &Source) -> Vec<Finding> {
    if UNSAFE_PLACES.iter().any(|place| source.path.starts_with(place)) {
        return Vec::new();
    }
    let advice = "no `unsafe` here; it is allowed in the places that the rule names and nowhere else";
    lines_of(source, &["unsafe"]).map(|line| Finding::new(&source.path, line, Rule::Unsafe, advice)).collect()
}

/// Lines on which a sequence of tokens begins.
pub(super) fn lines_of<'a>(source: &'a Source, pattern: &'a [&str]) -> impl Iterator<Item = usize> + 'a {
    let matches =
        move |tokens: &&[Token]| tokens.iter().zip(pattern).all(|(token, text)| token.text == *text);
    source.tokens.windows(pattern.len()).filter(move |tokens| matches(tokens)).map(|tokens| tokens[0].line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rules::findings_of;

    const BUS: &str = "crates/bus/src/a.rs";

    #[test]
    fn an_unwrap_in_a_library_is_found_even_in_a_macro() {
        assert_eq!(findings_of(panics, BUS, "fn a() { b().unwrap(); }").len(), 1);
        assert_eq!(
            findings_of(panics, BUS, "fn a() {\n    assert!(b().unwrap());\n}")[0].split(':').next(),
            Some("2")
        );
        assert_eq!(findings_of(panics, BUS, "fn a() { todo!() }").len(), 1);
    }

    #[test]
    fn tests_and_tools_may_unwrap() {
        assert_eq!(findings_of(panics, BUS, "#[cfg(test)]\nmod tests { fn a() { b().unwrap(); } }"), [""; 0]);
        assert_eq!(findings_of(panics, "interop/src/lib.rs", "fn a() { b().unwrap(); }"), [""; 0]);
    }

    #[test]
    fn a_word_in_a_comment_or_a_string_is_no_code() {
        assert_eq!(
            findings_of(panics, BUS, "/// Not todo!() at all.\nfn a() { b(\"x.unwrap()\"); }"),
            [""; 0]
        );
        assert_eq!(findings_of(unsafety, BUS, "// unsafe\nfn a() { b(\"unsafe\"); }"), [""; 0]);
    }

    #[test]
    fn unwrap_or_is_another_word() {
        assert_eq!(findings_of(panics, BUS, "fn a() { b().unwrap_or(1); }"), [""; 0]);
    }

    #[test]
    fn unsafe_is_allowed_where_the_rule_says() {
        let text = "fn a() { unsafe { b() } }";
        assert_eq!(findings_of(unsafety, BUS, text).len(), 1);
        assert_eq!(findings_of(unsafety, "crates/drive/src/medium/file/uring.rs", text), [""; 0]);
        assert_eq!(findings_of(unsafety, "crates/drive/src/medium/file.rs", text).len(), 1);
        assert_eq!(findings_of(unsafety, "crates/usb/src/usbfs/kernel/node.rs", text), [""; 0]);
        assert_eq!(findings_of(unsafety, "crates/usb/src/usbfs/interface.rs", text).len(), 1);
    }
}
