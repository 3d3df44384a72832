//! What is shown of project files.

use super::Form;
use super::read::read;

fn runs(form: Form, text: &str) -> Vec<String> {
    read(form, text).runs
}

#[test]
fn settings_show_each_command_and_each_other_field() {
    let text = r#"{
        // A comment, and a // in a string.
        "hooks": { "SessionStart": [{ "hooks": [{ "type": "command", "command": "sh \"//x\".sh" }] }] },
        "apiKeyHelper": "./key.sh",
        "statusLine": { "type": "command", "command": "date" },
        "env": { "SECRET": "hidden" },
        "permissions": { "allow": ["Bash(*)"] } /* the end */
    }"#;
    let reading = read(Form::Json, text);
    assert_eq!(
        reading.runs,
        [
            "apiKeyHelper: ./key.sh",
            "env: SECRET",
            "hooks.SessionStart: sh \"//x\".sh",
            "permissions: {\"allow\":[\"Bash(*)\"]}",
            "statusLine: date",
        ]
    );
    assert!(reading.counts);
    assert!(reading.words.contains(&"./key.sh".to_owned()), "{:?}", reading.words);
    assert!(reading.words.contains(&"//x.sh".to_owned()), "{:?}", reading.words);
}

#[test]
fn servers_show_their_command_and_no_secret() {
    let text = r#"{ "mcpServers": {
        "files": { "command": "node", "args": ["tools/server.js", "--all"], "env": { "KEY": "hidden" } },
        "far": { "type": "http", "url": "https://far.example", "headers": { "X": "hidden" } },
        "bare": { "command": "serve" } } }"#;
    let reading = read(Form::Json, text);
    assert_eq!(
        reading.runs,
        [
            "mcpServers.bare: serve",
            "mcpServers.far.url: connects to https://far.example",
            "mcpServers.far.headers: X",
            "mcpServers.files: node tools/server.js --all",
            "mcpServers.files.env: KEY",
        ]
    );
    assert!(!format!("{reading:?}").contains("hidden"));
    assert!(reading.words.contains(&"tools/server.js".to_owned()));
}

#[test]
fn toml_is_read_as_well() {
    let text = "notify = ['sh', '-c', 'date']\nsandbox_mode = 'danger-full-access'\n\
                [mcp_servers.x]\ncommand = 'serve'\nargs = ['-v']\n";
    assert_eq!(
        runs(Form::Toml, text),
        ["mcp_servers.x: serve -v", "notify: sh -c date", "sandbox_mode: \"danger-full-access\"",]
    );
}

#[test]
fn what_cannot_be_read_counts_all_the_same() {
    for (form, text) in [(Form::Json, "{"), (Form::Toml, "a = ["), (Form::Json, "[]")] {
        let reading = read(form, text);
        assert!(reading.counts, "{text}");
        assert_eq!(reading.runs.len(), 1, "{text}");
    }
    assert!(read(Form::Opaque, "allow").counts);
    assert!(!read(Form::Script, "rm -r x").counts);
}

#[test]
fn variables_are_shown_by_name() {
    let text = "# a comment=1\nexport A=hidden\n B = hidden\nC: hidden\n\nword\n";
    assert_eq!(runs(Form::Variables, text), ["sets A, B, C"]);
}

#[test]
fn markdown_counts_if_it_can_run_something() {
    let plain = "---\nname: x\ndescription: hooks: none\n---\nUse `ls` and be kind!\n";
    assert!(!read(Form::Markdown, plain).counts);
    assert!(!read(Form::Markdown, "hooks: in the text\n").counts);
    let hooks = "---\nname: x\nhooks:\n  PreToolUse:\n    - command: ./a.sh\n---\ntext\n";
    let reading = read(Form::Markdown, hooks);
    assert!(reading.counts);
    assert!(reading.runs.iter().any(|line| line.contains("./a.sh")), "{:?}", reading.runs);
    assert!(reading.words.contains(&"./a.sh".to_owned()));
    assert_eq!(runs(Form::Markdown, "See !`git status` first."), ["runs: git status"]);
    assert!(read(Form::Markdown, "```!\nls\n```\n").counts);
}

#[test]
fn prompts_count_if_they_have_a_command() {
    assert!(!read(Form::Prompt, "prompt = 'Say {{args}}!'").counts);
    assert_eq!(runs(Form::Prompt, "prompt = 'Look: !{git diff}'"), ["runs: git diff"]);
}

#[test]
fn what_is_shown_is_bounded_and_says_so() {
    let long = format!("{{ \"apiKeyHelper\": \"{}\" }}", "x".repeat(5000));
    let lines = runs(Form::Json, &long);
    assert!(lines[0].len() < 2100 && lines[0].contains("more characters"), "{}", lines[0].len());
    let many: Vec<String> = (0..300).map(|at| format!("\"k{at}\": 1")).collect();
    let lines = runs(Form::Json, &format!("{{ {} }}", many.join(",")));
    assert_eq!(lines.len(), 101);
    assert_eq!(lines[100], "… and 200 more; read the file");
    let deep = format!("{}1{}", "{\"a\":".repeat(60), "}".repeat(60));
    assert_eq!(runs(Form::Json, &deep).len(), 1);
}
