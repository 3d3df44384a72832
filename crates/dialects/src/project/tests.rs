//! What is shown of project files.

use super::FileFormat;
use super::read::read;

fn runs(form: FileFormat, text: &str) -> Vec<String> {
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
    let reading = read(FileFormat::Json, text);
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
    let reading = read(FileFormat::Json, text);
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
        runs(FileFormat::Toml, text),
        ["mcp_servers.x: serve -v", "notify: sh -c date", "sandbox_mode: \"danger-full-access\"",]
    );
}

#[test]
fn what_cannot_be_read_counts_all_the_same() {
    for (form, text) in
        [(FileFormat::Json, "{"), (FileFormat::Toml, "a = ["), (FileFormat::Json, "[]")]
    {
        let reading = read(form, text);
        assert!(reading.counts, "{text}");
        assert_eq!(reading.runs.len(), 1, "{text}");
    }
    assert!(read(FileFormat::Opaque, "allow").counts);
    assert!(!read(FileFormat::Script, "rm -r x").counts);
}

#[test]
fn variables_are_shown_by_name() {
    let text = "# a comment=1\nexport A=hidden\n B = hidden\nC: hidden\n\nword\n";
    assert_eq!(runs(FileFormat::Variables, text), ["sets A, B, C"]);
}

#[test]
fn markdown_counts_if_it_can_run_something() {
    let plain = "---\nname: x\ndescription: hooks: none\n---\nUse `ls` and be kind!\n";
    assert!(!read(FileFormat::Markdown, plain).counts);
    assert!(!read(FileFormat::Markdown, "hooks: in the text\n").counts);
    let hooks = "---\nname: x\nhooks:\n  PreToolUse:\n    - command: ./a.sh\n---\ntext\n";
    let reading = read(FileFormat::Markdown, hooks);
    assert!(reading.counts);
    assert!(reading.runs.iter().any(|line| line.contains("./a.sh")), "{:?}", reading.runs);
    assert!(reading.words.contains(&"./a.sh".to_owned()));
    assert_eq!(runs(FileFormat::Markdown, "See !`git status` first."), ["runs: git status"]);
    assert!(read(FileFormat::Markdown, "```!\nls\n```\n").counts);
}

#[test]
fn markdown_counts_unless_all_of_it_is_known_to_be_text() {
    for (text, counts) in [
        // Ordinary files.
        ("Do it.", false),
        ("", false),
        ("Do it.\n\n---\n\nhooks: in the text\n", false),
        ("---\nname: a\ndescription: b\nmodel: sonnet\n---\nDo it.\n", false),
        ("---\r\nname: a\r\ndescription: \"b: c\"\r\n---\r\nDo it.\r\n", false),
        ("---\nname: a\ntools: Read, Grep, Bash\ncolor: blue\n---\n", false),
        ("---\ndescription: a\nargument-hint: [file] [line]\n---\nLook at $1.\n", false),
        ("---\nname: a\n# A comment: with a colon\n\ntools:\n  - Read\n  - Grep\n---\n", false),
        ("---\nname: a\ndescription: >\n  Long text\n  on two lines\n---\n", false),
        ("\u{feff}---\nname: a\n---\n", false),
        ("---\n---\nDo it.\n", false),
        ("---\nname: a\n---\nMail me@example.com, or see @README.md!\n", false),
        // Fields with an effect, in the forms that YAML has for them.
        ("---\nhooks: x\n---\n", true),
        ("---\nname: a\nallowed-tools: Bash(*)\n---\n", true),
        ("---\npermissionMode: bypassPermissions\n---\n", true),
        ("---\n\"permissionMode\": bypassPermissions\n---\n", true),
        ("---\n'hooks':\n  Stop: []\n---\n", true),
        ("---\n\"ho\\u006fks\": x\n---\n", true),
        ("---\n  allowed-tools: Bash\n---\n", true),
        ("---\n# a\n  allowed-tools: Bash\n---\n", true),
        ("---\nname: a\n  allowed-tools: Bash\n---\n", true),
        ("---\n\tallowed-tools: Bash\n---\n", true),
        ("---\nallowed-tools : Bash\n---\n", true),
        ("---\nallowed-tools\n: Bash\n---\n", true),
        ("---\n{allowed-tools: Bash, hooks: {}}\n---\n", true),
        ("---\n{name: a,\nhooks: {}}\n---\n", true),
        ("---\n? hooks\n: x\n---\n", true),
        ("---\n!!str hooks: x\n---\n", true),
        ("---\n&a hooks: x\n---\n", true),
        ("---\nname: &a\n  hooks: x\n<<: *a\n---\n", true),
        ("---\nname: &a x\n---\n", true),
        ("---\nname: !!js/function x\n---\n", true),
        ("---\ntags: [!!js/function x]\n---\n", true),
        ("---\nname: {a: b}\n---\n", true),
        ("---\n- hooks: x\n---\n", true),
        ("---\nname:x\n---\n", true),
        ("---\nunheard-of: x\n---\n", true),
        ("---\nName: x\n---\n", true),
        // Line ends in YAML only.
        ("---\nname: a\rhooks: x\n---\n", true),
        ("---\nname: a\u{85}hooks: x\n---\n", true),
        ("---\nname: a\u{2028}hooks: x\n---\n", true),
        // Where the fields start and end.
        ("\u{feff}---\nhooks: x\n---\n", true),
        ("\n \n---\nhooks: x\n---\n", true),
        ("--- \t\nhooks: x\n---\n", true),
        ("---\n\nhooks: x\n---\n", true),
        ("---\n---\nhooks: x\n---\n", true),
        ("---\n\n---\nhooks: x\n---\n", true),
        ("---\nname: a\n---\u{a0}\nhooks: x\n---\n", true),
        ("---\nname: a\n...\nhooks: x\n---\n", true),
        ("---yaml\nhooks: x\n---\n", true),
        ("---json\n{\"hooks\": {}}\n---\n", true),
        ("---\nhooks: x\n", true),
        ("---\nname: a\n", true),
        ("---", true),
        // Commands in the text.
        ("---\nname: a\n---\nSee !`date`.\n", true),
        ("---\nname: a\n---\n```!\ndate\n```\n", true),
        ("See !{date}.\n", true),
        ("See !{date\n", true),
        ("See @{secrets}.\n", true),
    ] {
        let reading = read(FileFormat::Markdown, text);
        assert_eq!(reading.counts, counts, "{text:?}: {reading:?}");
        assert_eq!(reading.runs.is_empty(), !counts, "{text:?}: it is shown why");
    }
}

#[test]
fn prompts_count_unless_all_of_it_is_known_to_be_text() {
    for (text, runs) in [
        ("prompt = 'Say {{args}}!'", None),
        ("description = 'a'\nprompt = '''\nSay\n'''\n", None),
        ("# !{date}\nprompt = 'a'", None),
        ("prompt = 'Look: !{git diff}'", Some("runs: git diff")),
        ("prompt = \"!\\u007bcmd}\"", Some("runs: cmd")),
        ("prompt = \"\\u0021{cmd}\"", Some("runs: cmd")),
        ("prompt = \"\"\"\n!\\\n   {cmd}\"\"\"", Some("runs: cmd")),
        ("\"pro\\u006dpt\" = '!{cmd}'", Some("runs: cmd")),
        ("prompt = '!{cmd'", Some("has an unclosed !{")),
        ("prompt = '@{secrets}'", Some("inserts: secrets")),
        ("prompt = ['!{cmd}']", Some("prompt: [\"!{cmd}\"]")),
        ("run = 'cmd'\nprompt = 'a'", Some("run: \"cmd\"")),
        ("[prompt]\na = 1", Some("prompt: {\"a\":1}")),
        ("prompt = '", Some("cannot be read as TOML")),
    ] {
        let reading = read(FileFormat::Prompt, text);
        assert_eq!(reading.runs.first().map(String::as_str), runs, "{text}");
        assert_eq!(reading.counts, runs.is_some(), "{text}");
    }
}

#[test]
fn what_is_shown_is_bounded_and_says_so() {
    let long = format!("{{ \"apiKeyHelper\": \"{}\" }}", "x".repeat(5000));
    let lines = runs(FileFormat::Json, &long);
    assert!(lines[0].len() < 2100 && lines[0].contains("more characters"), "{}", lines[0].len());
    let many: Vec<String> = (0..300).map(|at| format!("\"k{at}\": 1")).collect();
    let lines = runs(FileFormat::Json, &format!("{{ {} }}", many.join(",")));
    assert_eq!(lines.len(), 101);
    assert_eq!(lines[100], "… and 200 more; read the file");
    let deep = format!("{}1{}", "{\"a\":".repeat(60), "}".repeat(60));
    assert_eq!(runs(FileFormat::Json, &deep).len(), 1);
}
