//! `cargo xtask book`: the tutorials as pages for a browser, in `target/book`.
//!
//! mdBook makes them; its version is pinned here, and it is installed under `target/tools` where the path has none of that
//! version. What it warns of is an error, and so is a link within the book that leads nowhere. That the tutorials' commands work
//! is seen elsewhere: `interop/tests/book.rs` follows them.

use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The version of mdBook that the pages are made for.
const MDBOOK: &str = "0.5.4";

/// Makes the book, and says where it is.
pub(crate) fn run() -> Result<bool> {
    println!("{}", make()?.join("index.html").display());
    Ok(true)
}

/// Makes the book; its folder.
pub(crate) fn make() -> Result<PathBuf> {
    let root = workspace::root();
    let book = root.join("target/book");
    let mut build = Command::new(mdbook(&root)?);
    build.arg("build").arg(root.join("docs/book")).arg("--dest-dir").arg(&book);
    let output = build.output().context("start mdbook")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && !stderr.contains("WARN"), "mdbook: {}", stderr.trim_end());
    let lost = lost_links(&book)?;
    ensure!(lost.is_empty(), "links that lead nowhere:\n{}", lost.join("\n"));
    Ok(book)
}

/// mdBook of the right version, installed if need be.
fn mdbook(root: &Path) -> Result<PathBuf> {
    let tools = root.join("target/tools");
    let own = tools.join("bin/mdbook");
    for program in [own.clone(), "mdbook".into()] {
        let said = Command::new(&program).arg("--version").output();
        if said.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(MDBOOK)) {
            return Ok(program);
        }
    }
    eprintln!("installing mdBook {MDBOOK} in {}: makes the book", tools.display());
    let mut install = Command::new(env!("CARGO"));
    // Unoptimised: it builds a book of a few pages, and building it is what takes time.
    install.args(["install", "mdbook", "--version", MDBOOK, "--locked", "--no-default-features", "--debug"]);
    install.args(["--quiet", "--root"]).arg(&tools);
    ensure!(install.status().context("start cargo")?.success(), "mdBook was not installed");
    Ok(own)
}

/// Links from page to page that lead to no file, in a folder and those below it.
fn lost_links(folder: &Path) -> Result<Vec<String>> {
    let mut lost = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let page = entry?.path();
        if page.is_dir() {
            lost.extend(lost_links(&page)?);
            continue;
        }
        if page.extension().is_none_or(|extension| extension != "html") {
            continue;
        }
        let text = fs::read_to_string(&page).with_context(|| format!("read {}", page.display()))?;
        let nowhere = links(&text).filter(|link| !folder.join(link).exists());
        lost.extend(nowhere.map(|link| format!("{}: {link}", page.display())));
    }
    Ok(lost)
}

/// Returns the links of a page within its folder, without fragments and queries.
fn links(html: &str) -> impl Iterator<Item = &str> {
    let values = html.split("href=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0));
    let files = values.filter_map(|link| link.split(['#', '?']).next());
    files.filter(|link| !link.is_empty() && !link.contains(':') && !link.starts_with("//"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_within_the_book_are_found() {
        let html = r##"<a href="a.html#b"><a href="#c"><a href="//d.example"><link href="css/e.css"><a href="mailto:f">"##;
        assert_eq!(links(html).collect::<Vec<_>>(), ["a.html", "css/e.css"]);
    }

    #[test]
    fn a_link_to_a_missing_page_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("a.html"), "<a href=\"a.html\"><a href=\"b.html#x\">").expect("written");
        let below = folder.path().join("below");
        fs::create_dir(&below).expect("made");
        fs::write(below.join("c.html"), "<a href=\"../a.html\"><a href=\"a.html\">").expect("written");
        let mut lost = lost_links(folder.path()).expect("read");
        lost.sort();
        assert!(lost.len() == 2 && lost[0].ends_with("a.html: b.html"), "{lost:?}");
        assert!(lost[1].ends_with("c.html: a.html"), "{lost:?}");
    }
}
