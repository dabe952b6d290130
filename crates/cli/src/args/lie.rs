//! Lies of a virtual drive as arguments: `NAME`, `NAME=SIZE` or `NAME=LBA`.

use super::quantity;
use crate::nearest;
use drive::medium::{Lie, LieValue, NotALie};
use drive::{Fault, FaultKind};

/// A temperature above that at which drives work, in degrees Celsius.
const HOT_CELSIUS: u8 = 85;

/// A way in which a virtual drive lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LieArgument {
    /// About its blocks.
    Blocks(Lie),
    /// In each message of a kind.
    Messages(FaultKind),
    /// It never reports a unit attention condition.
    LostAttention,
    /// It reports a temperature that is too high.
    Hot,
}

impl LieArgument {
    /// The names of those without a value that are not about blocks.
    fn others() -> impl Iterator<Item = (&'static str, Self)> {
        let messages = FaultKind::LIES.into_iter().map(|kind| (kind.name(), Self::Messages(kind)));
        messages.chain([("lost-attention", Self::LostAttention), ("hot", Self::Hot)])
    }

    /// Returns the lies about blocks.
    pub(crate) fn about_blocks(lies: &[Self]) -> Vec<Lie> {
        let about_blocks = |lie: &Self| if let Self::Blocks(lie) = lie { Some(*lie) } else { None };
        lies.iter().filter_map(about_blocks).collect()
    }

    /// Returns the lies in messages, as faults that always happen.
    pub(crate) fn in_messages(lies: &[Self]) -> impl Iterator<Item = Fault> {
        lies.iter().filter_map(|lie| if let Self::Messages(kind) = lie { Some(kind.always()) } else { None })
    }

    /// Returns the temperature that these lies report, in degrees Celsius.
    pub(crate) fn temperature(lies: &[Self]) -> Option<u8> {
        lies.contains(&Self::Hot).then_some(HOT_CELSIUS)
    }
}

/// Parses a lie.
pub(crate) fn lie(text: &str) -> Result<LieArgument, String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    if let Some((_, other)) = LieArgument::others().find(|(known, _)| *known == name) {
        return if value.is_some() { Err(NotALie::HasNoValue.to_string()) } else { Ok(other) };
    }
    let is_block = Lie::ALL.iter().any(|known| known.name == name && known.value == LieValue::Lba);
    let value = match value {
        Some(lba) if is_block => Some(lba.parse().map_err(|_| format!("'{lba}' is not an LBA"))?),
        Some(size) => Some(quantity::size(size)?.0),
        None => None,
    };
    Lie::named(name, value).map(LieArgument::Blocks).map_err(|error| match error {
        NotALie::Unknown => {
            let known = Lie::ALL.iter().map(|known| known.name);
            let known = known.chain(LieArgument::others().map(|(name, _)| name));
            format!("no lie is named {name:?}. {}", nearest::hint(name, "lies", known))
        }
        NotALie::NeedsSize | NotALie::NeedsLba | NotALie::HasNoValue => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Arguments;
    use clap::CommandFactory;
    use units::{ByteCount, Lba};

    #[test]
    fn a_lie_has_a_name_and_a_value() {
        assert_eq!(lie("wrap=64G"), Ok(LieArgument::Blocks(Lie::Wrap(ByteCount(64 << 30)))));
        assert_eq!(lie("keep-after-unmap"), Ok(LieArgument::Blocks(Lie::KeepAfterUnmap)));
        assert_eq!(lie("stuck=1000"), Ok(LieArgument::Blocks(Lie::Stuck(Lba(1000)))));
        assert_eq!(lie("wrong-residue"), Ok(LieArgument::Messages(FaultKind::WrongResidue)));
        assert_eq!(lie("hot"), Ok(LieArgument::Hot));
        for (text, words) in [
            ("warp=64G", "Did you mean `wrap`?"),
            ("wrong-residu", "Did you mean `wrong-residue`?"),
            ("lose-status", "no lie is named"),
            ("wrap", "needs a size"),
            ("wrap=many", "is not a size"),
            ("stuck=1M", "'1M' is not an LBA"),
            ("stuck", "needs an LBA"),
            ("capacity-off-by-one=1", "has no value"),
            ("hot=1", "has no value"),
        ] {
            let error = lie(text).expect_err("it is refused");
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn the_help_of_both_commands_names_all_lies() {
        let mut all = Arguments::command();
        for name in ["serve", "check"] {
            let command = all.find_subcommand_mut(name).expect("a command");
            let help = command.render_long_help().to_string();
            assert!(Lie::ALL.iter().all(|lie| help.contains(lie.name)), "{name}: {help}");
            assert!(LieArgument::others().all(|(lie, _)| help.contains(lie)), "{name}: {help}");
        }
    }

    #[test]
    fn the_help_of_serve_names_all_faults_of_a_drive() {
        let mut all = Arguments::command();
        let command = all.find_subcommand_mut("serve").expect("a command");
        let help = command.render_long_help().to_string();
        assert!(FaultKind::ALL.iter().all(|kind| help.contains(kind.name())), "{help}");
    }
}
