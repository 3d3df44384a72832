//! Where a session is shown: stdout, stderr, and the status line at the bottom. A thread does the
//! writing, so that a slow reader blocks nothing else.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use agentwire_protocol::{ErrorCode, Event, GatewayError, Profile, Stream};
use tokio::sync::{mpsc, oneshot};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::args::{Format, Output};
use crate::print;
use crate::view::layout::{self, Ink, Page};
use crate::view::{Lens, Style, View};

const WAITING: usize = 4;

/// How long it is quiet before the spinner appears.
const PATIENCE: Duration = Duration::from_millis(300);

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// What stdout gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Text for the user who gave the prompt: everything on a terminal, else only the answer.
    Talk,
    /// Everything as text, with prompts.
    Story,
    Events(Profile),
    /// The agent's own stdout.
    Native,
}

impl Shape {
    /// Events, or this text.
    pub(crate) fn of(output: Output, text: Self) -> Self {
        match output.format {
            Format::Text => text,
            Format::Jsonl => Self::Events(output.profile),
        }
    }
}

pub(crate) struct Screen {
    shape: Shape,
    /// Text for stdout.
    main: Option<View>,
    /// Text for stderr.
    side: Option<View>,
    bottom_is_side: bool,
    /// Whether stdout is a terminal: control characters of agents must not reach it.
    is_shown: bool,
    /// Whether the stream with the bottom line is a terminal.
    is_seen: bool,
    /// Whether it can erase lines.
    can_erase: bool,
    bottom: Option<Bottom>,
    frame: usize,
    quiet_since: Instant,
    pending: Chunk,
    /// The reader is gone.
    is_closed: bool,
    writer: mpsc::Sender<Chunk>,
    written: oneshot::Receiver<io::Result<()>>,
}

/// The line at the bottom, as it was drawn.
struct Bottom {
    text: String,
    /// Columns that it takes.
    drawn: usize,
    /// Columns that the terminal had.
    columns: usize,
}

#[derive(Debug, Default)]
struct Chunk {
    out: Vec<u8>,
    err: Vec<u8>,
}

impl Chunk {
    fn is_empty(&self) -> bool {
        self.out.is_empty() && self.err.is_empty()
    }
}

impl Screen {
    pub(crate) fn new(shape: Shape) -> Self {
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        let out_style = Style { color: print::has_colour(&io::stdout()) };
        let err_style = Style { color: print::has_colour(&io::stderr()) };
        let (main, side) = match shape {
            Shape::Talk if out => (Some(View::new(out_style, Lens::Whole)), None),
            Shape::Talk => {
                let lens = if err { Lens::Progress } else { Lens::Notes };
                let answer = View::new(Style::default(), Lens::Answer);
                (Some(answer), Some(View::new(err_style, lens)))
            }
            Shape::Story => (Some(View::new(out_style, Lens::Whole).with_prompts()), None),
            Shape::Events(_) => (None, Some(View::new(err_style, Lens::Notes))),
            Shape::Native => (None, None),
        };
        let (is_seen, bottom_style) =
            if side.is_some() { (err, err_style) } else { (out, out_style) };
        let (writer, chunks) = mpsc::channel(WAITING);
        let (done, written) = oneshot::channel();
        std::thread::spawn(move || {
            let _ = done.send(write_all(chunks));
        });
        Self {
            shape,
            main,
            bottom_is_side: side.is_some(),
            side,
            is_shown: out,
            is_seen,
            can_erase: is_seen && bottom_style.color,
            bottom: None,
            frame: 0,
            quiet_since: Instant::now(),
            pending: Chunk::default(),
            is_closed: false,
            writer,
            written,
        }
    }

    /// Whether there is a terminal to ask on.
    pub(crate) fn is_seen(&self) -> bool {
        self.is_seen
    }

    /// Shows an event; `line` is its JSON.
    pub(crate) fn event(&mut self, line: &[u8], event: Event<'static>) -> Result<(), GatewayError> {
        self.follow_resize();
        let mut new = Chunk::default();
        match self.shape {
            Shape::Talk | Shape::Story => {}
            Shape::Events(Profile::Full) => {
                new.out.extend_from_slice(line);
                new.out.push(b'\n');
            }
            Shape::Events(profile) => {
                if let Some(event) = profile.show(event.clone()) {
                    event.write_line(&mut new.out).map_err(|error| {
                        let message = format!("failed to write an event: {error}");
                        GatewayError::new(ErrorCode::Internal, message)
                    })?;
                }
            }
            Shape::Native => {
                let said = event.native.iter().filter(|native| native.stream == Stream::Stdout);
                said.for_each(|native| native.write_to(&mut new.out));
            }
        }
        if self.main.is_none() && self.is_shown {
            let text = String::from_utf8_lossy(&new.out);
            new.out = layout::as_json(&text).as_bytes().to_vec();
        }
        // Writing to memory cannot fail.
        match (&mut self.main, &mut self.side) {
            (Some(main), Some(side)) => {
                let _ = main.event(event.clone(), &mut new.out);
                let _ = side.event(event, &mut new.err);
            }
            (Some(view), None) => drop(view.event(event, &mut new.out)),
            (None, Some(view)) => drop(view.event(event, &mut new.err)),
            (None, None) => {}
        }
        if !new.is_empty() && !self.is_closed {
            self.clear();
            self.quiet_since = Instant::now();
            self.pending.out.append(&mut new.out);
            self.pending.err.append(&mut new.err);
        }
        Ok(())
    }

    /// The terminal has another size: redraws the bottom line to fit it.
    pub(crate) fn resized(&mut self) {
        self.follow_resize();
        if let Some(text) = self.bottom.as_ref().map(|bottom| bottom.text.clone()) {
            self.bottom(&text);
        }
    }

    /// Wraps text at the width that the terminal has now.
    fn follow_resize(&mut self) {
        if let Some(main) = &mut self.main {
            main.set_width(print::columns());
        }
        if let Some(side) = &mut self.side {
            side.set_width(print::error_columns());
        }
    }

    /// Prints something besides the events.
    pub(crate) fn aside(&mut self, say: impl FnOnce(&mut Page, Option<&str>)) {
        self.follow_resize();
        self.clear();
        self.quiet_since = Instant::now();
        let (view, out) = match (&mut self.side, &mut self.main) {
            _ if self.is_closed => return,
            (Some(view), _) => (view, &mut self.pending.err),
            (None, Some(view)) => (view, &mut self.pending.out),
            (None, None) => return,
        };
        let directory = view.directory().map(str::to_owned);
        let _ = view.aside(out, |page| say(page, directory.as_deref()));
    }

    /// The user has seen what this tool wants to change.
    pub(crate) fn saw_changes_of(&mut self, tool: &str) {
        for view in [&mut self.main, &mut self.side].into_iter().flatten() {
            view.saw_changes_of(tool);
        }
    }

    /// Prints a line besides the events.
    pub(crate) fn remark(&mut self, text: &str) {
        self.aside(|page, _| page.line(&[(Ink::Yellow, "· "), (Ink::Yellow, text)]));
    }

    /// Sets the bottom line. New text goes above it.
    pub(crate) fn bottom(&mut self, text: &str) {
        let columns = columns();
        let is_drawn =
            |bottom: &Bottom| bottom.text == text && (bottom.columns == columns || !self.can_erase);
        if !self.is_seen || self.bottom.as_ref().is_some_and(is_drawn) {
            return;
        }
        self.clear();
        self.end_line();
        let shown = if self.can_erase { fitting(text, columns) } else { text.to_owned() };
        self.push(&shown);
        self.bottom = Some(Bottom { text: text.to_owned(), drawn: shown.width(), columns });
    }

    /// Prints a prompt for a line of input.
    pub(crate) fn ask(&mut self, text: &str) {
        self.clear();
        self.end_line();
        self.push(text);
    }

    /// Rings the bell for a key without a meaning.
    pub(crate) fn ring(&mut self) {
        if self.can_erase {
            self.push("\x07");
        }
    }

    pub(crate) fn spin(&mut self, hint: &str) {
        let text_is_open = self.top().is_some_and(View::is_mid_line);
        let quiet = self.quiet_since.elapsed();
        if !self.can_erase || text_is_open || quiet < PATIENCE || !self.is_idle() {
            return;
        }
        self.frame = (self.frame + 1) % FRAMES.len();
        let frame = FRAMES.get(self.frame).copied().unwrap_or_default();
        let doing = self.top().map(View::activity).unwrap_or_default();
        let doing = crate::view::layout::on_one_line(&doing).into_owned();
        let text = format!("{frame} {} s  {doing}  {hint}", quiet.as_secs());
        self.bottom(&text);
    }

    /// Shows a bottom line while the session is idle.
    pub(crate) fn rest(&mut self, text: &str) {
        if self.can_erase && self.is_idle() {
            self.bottom(text);
        }
    }

    /// Erases the bottom line.
    pub(crate) fn clear(&mut self) {
        let Some(bottom) = self.bottom.take() else { return };
        if !self.can_erase {
            return self.push("\n");
        }
        // A terminal that became narrower has wrapped the line onto further rows.
        match bottom.drawn.saturating_sub(1) / columns() {
            0 => self.push("\r\x1b[K"),
            rows => self.push(&format!("\r\x1b[{rows}A\x1b[J")),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// Hands pending output to the writer; waits while the reader is slow. An error means that the
    /// reader is gone.
    pub(crate) async fn hand_over(&mut self) -> Result<(), ()> {
        if self.is_idle() {
            return std::future::pending().await;
        }
        let Ok(permit) = self.writer.reserve().await else {
            self.pending = Chunk::default();
            self.is_closed = true;
            return Err(());
        };
        permit.send(std::mem::take(&mut self.pending));
        Ok(())
    }

    /// Ends open lines and waits until everything is written.
    pub(crate) async fn finish(mut self) -> io::Result<()> {
        self.clear();
        self.end_line();
        if let Some(main) = &mut self.main {
            let _ = main.rest(&mut self.pending.out);
        }
        if !self.is_idle() {
            let _ = self.writer.send(self.pending).await;
        }
        drop(self.writer);
        self.written.await.unwrap_or_else(|_| Err(io::Error::other("failed to write the output")))
    }

    /// The view above the bottom line.
    fn top(&self) -> Option<&View> {
        if self.bottom_is_side { self.side.as_ref() } else { self.main.as_ref() }
    }

    fn end_line(&mut self) {
        match (self.bottom_is_side, &mut self.main, &mut self.side) {
            (true, _, Some(view)) => drop(view.rest(&mut self.pending.err)),
            (false, Some(view), _) => drop(view.rest(&mut self.pending.out)),
            (true, _, None) | (false, None, _) => {}
        }
    }

    fn push(&mut self, text: &str) {
        if self.is_closed {
            return;
        }
        let to = if self.bottom_is_side { &mut self.pending.err } else { &mut self.pending.out };
        to.extend_from_slice(text.as_bytes());
    }
}

fn write_all(mut chunks: mpsc::Receiver<Chunk>) -> io::Result<()> {
    while let Some(chunk) = chunks.blocking_recv() {
        print::write(&chunk.out, &chunk.err)?;
    }
    Ok(())
}

/// Columns of the terminal.
fn columns() -> usize {
    print::width().unwrap_or(80).max(1)
}

/// As much of a line as fits. The last column stays free: terminals wrap after it.
fn fitting(text: &str, columns: usize) -> String {
    let width = columns.saturating_sub(1);
    let mut used = 0;
    let fits = |char: &char| {
        used += char.width().unwrap_or(0);
        used <= width
    };
    text.chars().take_while(fits).collect()
}
