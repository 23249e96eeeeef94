//! The viewer's choices on a live screen, made by keys.

/// The choices of a viewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The operation whose times are shown, by its place; at first the one with the most requests.
    pub op: usize,
    /// Whether the heat map shows service in place of response.
    pub shows_service: bool,
    /// The lower panel that a small screen shows, counted on from one to the next.
    pub panel: usize,
    /// Whether the help is shown.
    pub shows_help: bool,
    /// Whether the screen is frozen.
    pub is_frozen: bool,
}
