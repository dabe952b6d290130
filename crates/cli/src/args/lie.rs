//! Lies of a virtual drive as arguments: `NAME`, `NAME=SIZE` or `NAME=LBA`.

use super::quantity;
use crate::nearest;
use drive::medium::{Lie, LieValue, NotALie};

/// Parses a lie.
pub(crate) fn lie(text: &str) -> Result<Lie, String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let is_block = Lie::ALL.iter().any(|known| known.name == name && known.value == LieValue::Lba);
    let value = match value {
        Some(lba) if is_block => Some(lba.parse().map_err(|_| format!("'{lba}' is not an LBA"))?),
        Some(size) => Some(quantity::size(size)?.0),
        None => None,
    };
    Lie::named(name, value).map_err(|error| match error {
        NotALie::Unknown => {
            let known = Lie::ALL.iter().map(|known| known.name);
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
        assert_eq!(lie("wrap=64G"), Ok(Lie::Wrap(ByteCount(64 << 30))));
        assert_eq!(lie("keep-after-unmap"), Ok(Lie::KeepAfterUnmap));
        assert_eq!(lie("stuck=1000"), Ok(Lie::Stuck(Lba(1000))));
        for (text, words) in [
            ("warp=64G", "Did you mean `wrap`?"),
            ("wrap", "needs a size"),
            ("wrap=many", "is not a size"),
            ("stuck=1M", "'1M' is not an LBA"),
            ("stuck", "needs an LBA"),
            ("capacity-off-by-one=1", "has no value"),
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
        }
    }
}
