//! The program on pipes: every line is read with a deadline.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use super::{Home, PATIENCE, working_in};

/// Lines read ahead of the test.
const AHEAD: usize = 1 << 16;

pub(crate) struct Program {
    home: Home,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Option<Receiver<String>>,
    stderr: Option<JoinHandle<String>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
}

impl Program {
    pub(crate) fn start(home: &Home, command: &mut Command) -> Self {
        let mut program = Self::quiet(home, command);
        program.listen();
        program
    }

    /// Starts it without reading its stdout yet.
    pub(crate) fn quiet(home: &Home, command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut said = child.stderr.take().expect("stderr");
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            said.read_to_end(&mut text).expect("stderr can be read");
            String::from_utf8_lossy(&text).into_owned()
        });
        let stdin = child.stdin.take();
        Self { home: home.clone(), child, stdin, lines: None, stderr: Some(stderr) }
    }

    /// Starts reading its stdout.
    pub(crate) fn listen(&mut self) {
        let mut stdout = BufReader::new(self.child.stdout.take().expect("stdout"));
        let (said, lines) = sync_channel(AHEAD);
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while stdout.read_until(b'\n', &mut line).expect("stdout can be read") > 0 {
                assert_eq!(line.pop(), Some(b'\n'), "half a line on stdout");
                let text = String::from_utf8(std::mem::take(&mut line)).expect("stdout is UTF-8");
                if said.send(text).is_err() {
                    return;
                }
            }
        });
        self.lines = Some(lines);
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes these bytes; returns false if the program no longer reads.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> bool {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(bytes).and_then(|()| stdin.flush()).is_ok()
    }

    #[expect(clippy::needless_pass_by_value, reason = "accepts values and texts alike")]
    pub(crate) fn say(&mut self, line: impl ToString) {
        assert!(self.bytes(format!("{}\n", line.to_string()).as_bytes()), "it no longer reads");
    }

    /// Writes all this and closes stdin, from another thread, so that stdout is read meanwhile.
    pub(crate) fn pour(&mut self, text: String) {
        drop(self.pour_on(text));
    }

    /// Writes all this from another thread, so that stdout is read meanwhile. Stdin closes when the
    /// returned handle's value is dropped.
    pub(crate) fn pour_on(&mut self, text: String) -> JoinHandle<ChildStdin> {
        let mut stdin = self.stdin.take().expect("stdin is open");
        std::thread::spawn(move || {
            stdin.write_all(text.as_bytes()).expect("it listens");
            stdin
        })
    }

    pub(crate) fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// The next line; `None` after the last.
    pub(crate) fn line(&mut self) -> Option<String> {
        self.line_or(|| String::from("it says nothing"))
    }

    /// The next line. If it does not arrive in time, the test fails with this reason.
    pub(crate) fn line_or(&mut self, why: impl Fn() -> String) -> Option<String> {
        match self.lines.as_ref().expect("stdout is being read").recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("{}", why()),
        }
    }

    /// Waits until it exits by itself, without closing its stdin. Returns the exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it is killed");
        self.child.wait().expect("it ends");
    }

    /// Closes stdin and waits for the exit. Nothing may be unread.
    pub(crate) fn end(&mut self) -> Ended {
        self.hang_up();
        if let Some(line) = self.lines.is_some().then(|| self.line()).flatten() {
            panic!("unread: {line}");
        }
        let code = self.wait();
        let stderr = self.stderr.take().expect("stderr").join().expect("stderr");
        Ended { code, stderr }
    }

    /// Like [`Self::end`], and no process may be left in its home.
    pub(crate) fn end_alone(mut self) -> Ended {
        let ended = self.end();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = working_in(self.home.root());
            if left.is_empty() {
                return ended;
            }
            assert!(Instant::now() < deadline, "left behind: {left:?}");
            std::thread::yield_now();
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
