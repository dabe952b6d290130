//! `filter_filter`: rules about which devices may be redirected (usbredir 0.7, capability `filter`).
//!
//! The packet has no type-specific header; its payload is a text of rules, ended by a zero byte:
//! `class,vendor,product,version,allow|…`, numbers in decimal or `0x` hexadecimal, `-1` for any.
//! The first rule that matches decides. Left out: what to do when none matches, which is the session's, and
//! octal numbers, which the reference parser reads but never writes.

use crate::DecodeError;
use core::fmt;

/// The rules of a peer, checked as they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter<'a> {
    text: &'a [u8],
}

/// One rule; `None` matches any value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterRule {
    /// Class of the device or of an interface.
    pub class: Option<u8>,
    /// idVendor.
    pub vendor_id: Option<u16>,
    /// idProduct.
    pub product_id: Option<u16>,
    /// bcdDevice.
    pub device_version: Option<u16>,
    /// Whether a device that the rule matches is allowed.
    pub allow: bool,
}

/// The rules of a [`Filter`], in order. Ends after a rule that cannot be read.
#[derive(Clone, Debug)]
pub struct FilterRules<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Filter<'a> {
    /// Decodes the payload of the packet: at least the zero byte.
    pub fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        match payload.split_last() {
            Some((0, text)) => Ok(Self { text }),
            Some((&last, _)) => Err(DecodeError::Invalid { field: "filter end", value: last.into() }),
            None => Err(DecodeError::Truncated { needed: 1, got: 0 }),
        }
    }

    /// The rules.
    pub const fn rules(&self) -> FilterRules<'a> {
        FilterRules { rest: Some(self.text) }
    }
}

impl FilterRule {
    /// Whether the rule speaks about this device.
    pub fn matches(&self, class: u8, vendor_id: u16, product_id: u16, device_version: u16) -> bool {
        self.class.is_none_or(|own| own == class)
            && self.vendor_id.is_none_or(|own| own == vendor_id)
            && self.product_id.is_none_or(|own| own == product_id)
            && self.device_version.is_none_or(|own| own == device_version)
    }

    fn parse(text: &[u8]) -> Result<Self, DecodeError> {
        let mut fields = text.split(|&byte| byte == b',').map(number);
        let mut next = || fields.next().flatten();
        let [class, vendor_id, product_id, device_version, allow] =
            [next(), next(), next(), next(), next()].map(|field| field.ok_or(WRONG_RULE));
        let allow = allow?.ok_or(WRONG_RULE)? != 0;
        if fields.next().is_some() {
            return Err(WRONG_RULE);
        }
        let class = class?.map(u8::try_from).transpose().map_err(|_| WRONG_RULE)?;
        Ok(Self {
            class,
            vendor_id: vendor_id?,
            product_id: product_id?,
            device_version: device_version?,
            allow,
        })
    }
}

const WRONG_RULE: DecodeError = DecodeError::Invalid { field: "filter rule", value: 0 };

/// A number of a rule: `Some(None)` for any, `None` for no number.
fn number(text: &[u8]) -> Option<Option<u16>> {
    let text = core::str::from_utf8(text).ok()?;
    if text == "-1" {
        return Some(None);
    }
    let (digits, radix) = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    u16::from_str_radix(digits, radix).ok().map(Some)
}

impl Iterator for FilterRules<'_> {
    type Item = Result<FilterRule, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let mut parts = self.rest?.splitn(2, |&byte| byte == b'|');
            let text = parts.next().unwrap_or_default();
            self.rest = parts.next();
            if text.is_empty() {
                continue; // the reference parser reads over empty rules
            }
            let rule = FilterRule::parse(text);
            if rule.is_err() {
                self.rest = None;
            }
            return Some(rule);
        }
    }
}

impl fmt::Display for FilterRule {
    /// The rule as it is written in a filter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            Some(class) => write!(f, "{class:#04x},")?,
            None => f.write_str("-1,")?,
        }
        for field in [self.vendor_id, self.product_id, self.device_version] {
            match field {
                Some(value) => write!(f, "{value:#06x},")?,
                None => f.write_str("-1,")?,
            }
        }
        write!(f, "{}", u8::from(self.allow))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::format;
    use std::vec::Vec;

    fn rules(payload: &[u8]) -> Vec<Result<FilterRule, DecodeError>> {
        Filter::decode(payload).unwrap().rules().collect()
    }

    #[test]
    fn literal_bytes_both_ways() {
        let first = FilterRule {
            class: Some(8),
            vendor_id: Some(0x1d6b),
            product_id: Some(260),
            device_version: None,
            allow: true,
        };
        let any =
            FilterRule { class: None, vendor_id: None, product_id: None, device_version: None, allow: false };
        assert_eq!(rules(b"0x08,0x1D6B,260,-1,1|-1,-1,-1,-1,0\0"), [Ok(first), Ok(any)]);
        assert_eq!(format!("{first}|{any}"), "0x08,0x1d6b,0x0104,-1,1|-1,-1,-1,-1,0");
    }

    #[test]
    fn empty_rules_are_read_over() {
        assert_eq!(rules(b"||-1,-1,-1,-1,1|\0").len(), 1);
        assert_eq!(rules(b"\0"), []);
    }

    #[test]
    fn a_rule_that_cannot_be_read_ends_the_list() {
        for text in ["-1,-1,-1,-1", "-1,-1,-1,-1,1,1", "0x100,-1,-1,-1,1", "a,-1,-1,-1,1", "-1,,-1,-1,1"] {
            let payload = format!("{text}|-1,-1,-1,-1,1\0");
            assert_eq!(rules(payload.as_bytes()), [Err(WRONG_RULE)], "{text}");
        }
    }

    #[test]
    fn a_text_without_its_zero_byte_is_refused() {
        assert_eq!(Filter::decode(b""), Err(DecodeError::Truncated { needed: 1, got: 0 }));
        let error = DecodeError::Invalid { field: "filter end", value: 0x31 };
        assert_eq!(Filter::decode(b"-1,-1,-1,-1,1"), Err(error));
    }

    #[test]
    fn a_rule_matches_what_it_names() {
        let rule = rules(b"8,0x1d6b,-1,-1,1\0")[0].unwrap();
        assert!(rule.matches(8, 0x1d6b, 1, 2));
        assert!(!rule.matches(3, 0x1d6b, 1, 2));
        assert!(!rule.matches(8, 0x1d6c, 1, 2));
    }

    proptest! {
        #[test]
        fn a_rule_written_is_the_rule_read(
            class: Option<u8>, vendor_id: Option<u16>, product_id: Option<u16>,
            device_version: Option<u16>, allow: bool,
        ) {
            let rule = FilterRule { class, vendor_id, product_id, device_version, allow };
            prop_assert_eq!(rules(format!("{rule}\0").as_bytes()), [Ok(rule)]);
        }

        #[test]
        fn any_bytes_decode_or_say_why(bytes in "[-0-9a-fx,|\0]{0,64}") {
            if let Ok(filter) = Filter::decode(bytes.as_bytes()) {
                prop_assert!(filter.rules().count() <= bytes.len());
            }
        }
    }
}
