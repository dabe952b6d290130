//! The default file of runs: in the user's data directory (XDG Base Directory Specification 0.8).

use std::ffi::OsString;
use std::path::PathBuf;

/// Returns `$XDG_DATA_HOME/uaskit/runs.sqlite`, with `$HOME/.local/share` if that is not set; none
/// without a home. A relative path in the variable is ignored, as specified. `of` looks up
/// environment variables.
pub fn default_path(of: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name: &str| of(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let share = folder("XDG_DATA_HOME").or_else(|| Some(folder("HOME")?.join(".local/share")))?;
    Some(share.join("uaskit").join("runs.sqlite"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(data_home: Option<&str>, home: Option<&str>) -> Option<PathBuf> {
        default_path(|name| match name {
            "XDG_DATA_HOME" => data_home.map(OsString::from),
            "HOME" => home.map(OsString::from),
            _ => None,
        })
    }

    #[test]
    fn the_data_directory_follows_the_specification() {
        assert_eq!(place(Some("/data"), Some("/users/me")), Some("/data/uaskit/runs.sqlite".into()));
        let own = Some("/users/me/.local/share/uaskit/runs.sqlite".into());
        assert_eq!(place(None, Some("/users/me")), own);
        assert_eq!(place(Some(""), Some("/users/me")), own);
        assert_eq!(place(Some("relative"), Some("/users/me")), own);
        assert_eq!(place(None, None), None);
    }
}
