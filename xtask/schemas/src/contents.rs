//! The table of contents of the book, made from the page of all pages and from the titles of the decisions.

/// The pages of a page of tables, in its order: its headings are parts, and the links in the first cells of its rows are chapters.
/// The decisions, by path and title, follow the last of them.
pub fn contents(page: &str, decisions: &[(String, String)]) -> String {
    let mut text = "# Summary\n\n[Documentation](README.md)\n".to_owned();
    for line in page.lines() {
        if let Some(part) = line.strip_prefix("## ") {
            text += &format!("\n# {part}\n\n");
        } else if let Some(cell) = line.strip_prefix("| [").and_then(|row| row.split(" |").next()) {
            text.extend(cell.split(", [").map(|link| format!("- [{link}\n")));
        }
    }
    text += "- [Decisions]()\n";
    text.extend(decisions.iter().map(|(path, title)| format!("  - [{title}]({path})\n")));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_chapters_and_decisions_follow_the_page() {
        let page = "# All\n\nWords.\n\n## Learn\n\n| page | about |\n|---|---|\n| [A](A.md), [B](b/B.md) | both |\n\n## Do\n\n| [C](C.md) | see [A](A.md) |\n";
        let decisions = [("decisions/1.md".to_owned(), "1. First".to_owned())];
        let expected = "# Summary\n\n[Documentation](README.md)\n\n# Learn\n\n- [A](A.md)\n- [B](b/B.md)\n\n# Do\n\n- [C](C.md)\n\
                        - [Decisions]()\n  - [1. First](decisions/1.md)\n";
        assert_eq!(contents(page, &decisions), expected);
    }
}
