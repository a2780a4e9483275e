//! Whether what the Markdown pages point at exists: files, headings, included code, and each page's place in the book.
//!
//! mdBook reports neither a dead link nor an include of a name that is no longer there; a reader would.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::check::{OK, Verdict};

/// Reads every page of the repository and of the book.
///
/// # Errors
/// Names each page with what it points at in vain.
pub(crate) fn check() -> Result<Verdict> {
    let root = crate::root();
    let mut pages = Vec::new();
    collect(root, &mut pages)?;
    let mut dead = Vec::new();
    for page in &pages {
        let text = read(page)?;
        let folder = page.parent().unwrap_or(root);
        for target in targets(&text) {
            if let Some(why) = complaint(page, folder, &target)? {
                dead.push(format!("{}: {why}", page.strip_prefix(root).unwrap_or(page).display()));
            }
        }
    }
    dead.extend(missing_from_the_book(&root.join("docs"), &pages)?);
    if !dead.is_empty() {
        bail!("{} dead links\n  {}", dead.len(), dead.join("\n  "));
    }
    eprintln!("\nlinks: {} pages, none points at nothing", pages.len());
    Ok(OK)
}

/// What a page points at: the target of a Markdown link, or of an mdBook include.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    Page { path: String, heading: Option<String> },
    Include { path: String, name: Option<String> },
}

/// All links and includes of a page. Code is skipped for links, since brackets mean other things there, but not for
/// includes, which is where they stand.
fn targets(text: &str) -> Vec<Target> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        for part in line.split("{{#").skip(1) {
            let Some((directive, _)) = part.split_once("}}") else { continue };
            if let Some((_, path)) = directive.split_once(' ').filter(|(verb, _)| verb.contains("include")) {
                let (path, name) = path
                    .trim()
                    .split_once(':')
                    .map_or_else(|| (path.trim(), None), |(path, name)| (path, Some(name)));
                found.push(Target::Include { path: path.to_owned(), name: name.map(str::to_owned) });
            }
        }
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            // Every second part of a line split at backticks is code.
            let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
            found.extend(
                prose
                    .split("](")
                    .skip(1)
                    .filter_map(|part| part.split_once(')'))
                    .filter_map(|(link, _)| page(link)),
            );
        }
    }
    found
}

/// A link within the repository; `None` for one that leads elsewhere.
fn page(link: &str) -> Option<Target> {
    let link = link.split_whitespace().next()?.trim_matches(['<', '>']);
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = link.split_once('#').map_or((link, None), |(path, heading)| (path, Some(heading)));
    Some(Target::Page { path: path.to_owned(), heading: heading.map(str::to_owned) })
}

fn complaint(page: &Path, folder: &Path, target: &Target) -> Result<Option<String>> {
    match target {
        Target::Page { path, heading } => {
            let file = if path.is_empty() { page.to_owned() } else { folder.join(path) };
            if !file.exists() {
                return Ok(Some(format!("there is no {path}")));
            }
            let markdown = file.extension().is_some_and(|extension| extension == "md");
            match heading.as_ref().filter(|_| markdown) {
                Some(heading) if !headings(&read(&file)?).contains(heading) => {
                    Ok(Some(format!("{path} has no #{heading}")))
                }
                _ => Ok(None),
            }
        }
        Target::Include { path, name } => {
            let file = folder.join(path);
            if !file.is_file() {
                return Ok(Some(format!("includes {path}, which is not there")));
            }
            let named = name.as_ref().filter(|name| name.starts_with(|c: char| c.is_alphabetic()));
            match named {
                Some(name) if !read(&file)?.contains(&format!("ANCHOR: {name}")) => {
                    Ok(Some(format!("{path} has no `ANCHOR: {name}`")))
                }
                _ => Ok(None),
            }
        }
    }
}

/// The names under which the headings of a page can be linked to.
fn headings(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let mut names = BTreeSet::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if let Some(heading) = line.strip_prefix('#').filter(|_| !fenced) {
            let heading = heading.trim_start_matches('#').trim().to_lowercase();
            let kept = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
            names.insert(heading.chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect());
        }
    }
    names
}

/// Pages under `docs/` that the summary does not name: mdBook leaves them out without a word.
fn missing_from_the_book(docs: &Path, pages: &[PathBuf]) -> Result<Vec<String>> {
    let named: BTreeSet<PathBuf> = targets(&read(&docs.join("SUMMARY.md"))?)
        .into_iter()
        .filter_map(|target| match target {
            Target::Page { path, .. } => Some(normal(&docs.join(path))),
            Target::Include { .. } => None,
        })
        .collect();
    let in_docs = pages.iter().filter(|page| page.starts_with(docs) && !page.ends_with("SUMMARY.md"));
    let missing = in_docs.filter(|page| !named.contains(&normal(page)));
    Ok(missing
        .map(|page| {
            format!("docs/SUMMARY.md: does not name {}", page.strip_prefix(docs).unwrap_or(page).display())
        })
        .collect())
}

/// The path without `.` and `..`, by its words alone.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// The Markdown pages below a folder, build products and hidden folders aside.
fn collect(folder: &Path, pages: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !name.starts_with('.') && path != crate::target() && name != "target" {
                collect(&path, pages)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    Ok(())
}

fn read(page: &Path) -> Result<String> {
    fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))
}

#[cfg(test)]
mod tests {
    use super::{Target, headings, targets};

    #[test]
    fn links_are_found_in_prose_and_includes_in_code() {
        let text = "See [a](a.md), [b](../b.md#the-end \"title\") and [out](https://example.org/x.md).\n\
            `[not](this.md)` but [this](#here).\n```rust\n{{#include ../examples/fanout.rs:feed}}\nlet x = y[0](z.md);\n```\n";
        let to = |path: &str, heading: Option<&str>| Target::Page {
            path: path.into(),
            heading: heading.map(Into::into),
        };
        assert_eq!(
            targets(text),
            [
                to("a.md", None),
                to("../b.md", Some("the-end")),
                to("", Some("here")),
                Target::Include { path: "../examples/fanout.rs".into(), name: Some("feed".into()) },
            ]
        );
    }

    #[test]
    fn headings_are_named_as_the_book_names_them() {
        let names = headings("# One, two: `three`!\n```sh\n# no heading\n```\n## Exit status of `run`\n");
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["exit-status-of-run", "one-two-three"]);
    }
}
