//! An agent, as the clients of the fronts name it; theirs are recordings.

/// An agent to be driven over one of its wires.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agent {
    pub(crate) name: &'static str,
    #[expect(dead_code, reason = "the settings name it")]
    pub(crate) driver: Option<&'static str>,
}
