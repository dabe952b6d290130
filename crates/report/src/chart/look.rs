//! The look of a series: colour, mark shape, dash and stripes.
//!
//! Colours are few, and fewer for print and colour-blind readers. Colours repeat in rounds; shapes
//! are chosen so that within eight rounds no two series share colour and shape, and within four of
//! eight colours none share shape and dash.

/// The look of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Colour, of [`HUES`](crate::HUES), or one for parts from [`PARTS_HUE`](crate::PARTS_HUE) on.
    pub hue: u8,
    /// How many earlier series have this colour; marks, dashes and stripes change per round.
    pub round: u8,
}

impl From<u8> for Look {
    fn from(hue: u8) -> Self {
        Self { hue, round: 0 }
    }
}

/// Outlines around a place, which their path has moved to.
const SHAPES: [&str; 8] = [
    "m-3.5,0a3.5,3.5 0 1,0 7,0a3.5,3.5 0 1,0 -7,0Z",
    "m-3.2,-3.2h6.4v6.4h-6.4Z",
    "m0,-4.4l4.2,7.4h-8.4Z",
    "m0,-4.6l4.6,4.6l-4.6,4.6l-4.6,-4.6Z",
    "m0,4.4l4.2,-7.4h-8.4Z",
    "m-1.5,-4.4h3v2.9h2.9v3h-2.9v2.9h-3v-2.9h-2.9v-3h2.9Z",
    "m-4,-4h8l-8,8h8Z",
    "m0,-2.1l2.1,-2.1l2.1,2.1l-2.1,2.1l2.1,2.1l-2.1,2.1l-2.1,-2.1l-2.1,2.1l-2.1,-2.1l2.1,-2.1l-2.1,-2.1l2.1,-2.1Z",
];

/// How lines are interrupted, round by round; the first is not.
pub(super) const DASHES: [&str; 4] = ["", "d1", "d2", "d3"];

impl Look {
    /// The outline of its marks.
    pub(crate) fn shape(self) -> &'static str {
        SHAPES[usize::from(self.hue % crate::HUES + self.round) % SHAPES.len()]
    }

    /// Which of the dashes its line has.
    pub(super) fn dash(self) -> usize {
        usize::from(self.round) % DASHES.len()
    }

    /// The class of the stripes of its bars; none in the first round.
    pub(super) fn stripes(self) -> Option<&'static str> {
        Some(DASHES[self.dash()]).filter(|class| !class.is_empty())
    }
}

/// Looks of the series of a chart, no two of them alike: what would look like one before it gets the next round. A line of another state has
/// the look of what it is a state of.
pub(super) fn apart(wanted: impl Iterator<Item = (Look, bool)>) -> Vec<Look> {
    let mut given: Vec<(Look, bool)> = Vec::new();
    for (mut look, is_dashed) in wanted {
        while given.contains(&(look, is_dashed)) && look.round < u8::MAX {
            look.round += 1;
        }
        given.push((look, is_dashed));
    }
    given.into_iter().map(|(look, _)| look).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn twenty_four_series_differ_without_their_colours() {
        let all = || (0..4).flat_map(|round| (0..8).map(move |hue| Look { hue, round }));
        let black: BTreeSet<_> = all().map(|look| (look.shape(), look.dash())).collect();
        assert_eq!(black.len(), 32);
        let without_lines: BTreeSet<_> = all().map(|look| (look.hue, look.shape())).collect();
        assert_eq!(without_lines.len(), 32);
    }

    #[test]
    fn what_has_the_colour_of_another_has_other_marks() {
        let of = |hue, round| Look { hue, round };
        let wanted =
            [(of(1, 0), false), (of(1, 0), false), (of(1, 1), false), (of(1, 0), true), (of(0, 0), false)];
        assert_eq!(apart(wanted.into_iter()), [of(1, 0), of(1, 1), of(1, 2), of(1, 0), of(0, 0)]);
    }
}
