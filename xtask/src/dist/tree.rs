//! Files that belong to the program, and where they go.

use super::build::Program;
use crate::command::output_of;
use crate::workspace;
use anyhow::{Context, Result};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// Name of each shell, the folder for its completions in a package, and their file name.
const SHELLS: [(&str, &str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions", "uaskit"),
    ("zsh", "usr/share/zsh/vendor-completions", "_uaskit"),
    ("fish", "usr/share/fish/vendor_completions.d", "uaskit.fish"),
];
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// The tree of an archive, in `root`: everything at hand, to be copied where one likes.
pub(super) fn of_archive(program: &Program, root: &Path) -> Result<()> {
    place(&program.path, &root.join("uaskit"), 0o755)?;
    manual_pages(program, &root.join("man"))?;
    for (shell, _, name) in SHELLS {
        completions(program, shell, &root.join("completions").join(name))?;
    }
    for document in DOCUMENTS {
        place(&workspace::root().join(document), &root.join(document), 0o644)?;
    }
    Ok(())
}

/// The tree of a Debian package, in `root`, without its control file (Debian Policy, 9.1 and 12).
pub(super) fn of_debian(program: &Program, root: &Path) -> Result<()> {
    place(&program.path, &root.join("usr/bin/uaskit"), 0o755)?;
    let manual = root.join("usr/share/man/man1");
    for page in manual_pages(program, &manual)? {
        // -n: no time and no name, so that the same page gives the same bytes.
        output_of(Command::new("gzip").args(["-9", "-n"]).arg(page))?;
    }
    for (shell, directory, name) in SHELLS {
        completions(program, shell, &root.join(directory).join(name))?;
    }
    let documents = root.join("usr/share/doc/uaskit");
    write(&documents.join("copyright"), COPYRIGHT)?;
    let changes = documents.join("changelog");
    place(&workspace::root().join("CHANGELOG.md"), &changes, 0o644)?;
    output_of(Command::new("gzip").args(["-9", "-n"]).arg(changes))?;
    Ok(())
}

/// Machine-readable, as Debian asks (copyright-format 1.0). Debian systems have the Apache licence's text themselves.
const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: uaskit

Files: *
Copyright: the authors of uaskit
License: Expat or Apache-2.0

License: Expat
 Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
 documentation files (the \"Software\"), to deal in the Software without restriction, including without limitation
 the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to
 permit persons to whom the Software is furnished to do so, subject to the following conditions:
 .
 The above copyright notice and this permission notice shall be included in all copies or substantial portions of
 the Software.
 .
 THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
 WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS
 OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
 OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

License: Apache-2.0
 On Debian systems the full text is in /usr/share/common-licenses/Apache-2.0.
";

fn manual_pages(program: &Program, directory: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(directory).with_context(|| format!("create {}", directory.display()))?;
    output_of(Command::new(&program.path).arg("man").arg(directory))?;
    let entries = fs::read_dir(directory).with_context(|| format!("list {}", directory.display()))?;
    let mut pages = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    pages.sort();
    Ok(pages)
}

fn completions(program: &Program, shell: &str, file: &Path) -> Result<()> {
    write(file, &output_of(Command::new(&program.path).args(["completions", shell]))?)
}

fn place(from: &Path, to: &Path, mode: u32) -> Result<()> {
    make_room(to)?;
    fs::copy(from, to).with_context(|| format!("copy {} to {}", from.display(), to.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))
        .with_context(|| format!("set mode of {}", to.display()))
}

/// Writes a text, with the folders that lead to it.
pub(super) fn write(file: &Path, text: &str) -> Result<()> {
    make_room(file)?;
    fs::write(file, text).with_context(|| format!("write {}", file.display()))
}

fn make_room(file: &Path) -> Result<()> {
    let parent = file.parent().context("a file at the root")?;
    fs::create_dir_all(parent).with_context(|| format!("create {}", parent.display()))
}
