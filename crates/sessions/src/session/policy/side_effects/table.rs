//! The table of options with side effects, and of programs that run others.

/// Options of a program that a rule with `*` does not cover.
#[derive(Clone, Copy, Debug)]
pub struct UncoveredOptions {
    /// The program, or a git command.
    pub program: &'static str,
    /// Its options. A word without a dash is a command or an argument. `*` in a long option is any text;
    /// `=..` is a value that leads out of the current directory, `=/` one that has a slash.
    pub options: &'static str,
    /// Letters that take a value: what follows one in its word is not an option. With `*`, letters are
    /// never bundled.
    pub valued: &'static str,
}

const fn row(
    program: &'static str,
    options: &'static str,
    valued: &'static str,
) -> UncoveredOptions {
    UncoveredOptions { program, options, valued }
}

pub const UNCOVERED_OPTIONS: &[UncoveredOptions] = &[
    row(
        "git",
        "--output --ext-diff --exec --extcmd --upload-pack --receive-pack \
         --open-files-in-pager --show-signature --no-index --unsafe-paths",
        "",
    ),
    row("git archive", "-o --remote", ""),
    row("git bisect", "run visualize view", ""),
    row("git clone", "-c --config -u --template --separate-git-dir", "boj"),
    row("git cherry-pick", "--strategy", ""),
    row("git config", "-f --file -e --edit", ""),
    row("git difftool", "-x -t --tool", ""),
    row("git fast-export", "--export-marks", ""),
    row("git format-patch", "-o --output-directory", "GOSUv"),
    row("git grep", "-O", "ABCefm"),
    row("git help", "-w --web -i --info", ""),
    row("git init", "--template --separate-git-dir", "b"),
    row("git merge", "-s --strategy", "FSXm"),
    row("git mergetool", "-t --tool", ""),
    row("git pull", "-s --strategy", "SXjo"),
    row("git rebase", "-x -s --strategy", "CSX"),
    row("git revert", "--strategy", ""),
    row("git send-email", "--smtp-server --sendmail-cmd --to-cmd --cc-cmd --header-cmd", ""),
    row("git submodule", "foreach", ""),
    row("find", "-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls", ""),
    row("fd", "--exec --exec-batch -x -X", "EScdejot"),
    row("rg", "--pre --hostname-bin --search-zip -z", "ABCEMTdefgjmrt"),
    row("ag", "--pager", ""),
    row("ack", "--pager --ackrc --output --create-ackrc", ""),
    row("sort", "--output --compress-program --files0-from -o", "STkt"),
    row("shuf", "--output -o", "in"),
    row("iconv", "--output -o", "ft"),
    row(
        "awk",
        "--file --include --load --exec --pretty-print --profile --dump-variables --debug \
         -f -i -l -E -o -p -d -D -W",
        "Fev",
    ),
    row(
        "less",
        "--log-file --LOG-FILE --lesskey-file --lesskey-src --lesskey-content --tag \
         --tag-file -o -O -k -t -T",
        "PDjpx",
    ),
    row("bat", "--pager", ""),
    row("tree", "-o -R", ""),
    row("date", "--set -s", "Idfr"),
    row("file", "--compile --magic-file -C -m", "Fef"),
    row("diff", "--paginate -l", "CDFIUWxX"),
    row("diff3", "--diff-program", ""),
    row("sdiff", "--output --diff-program -o", "Iw"),
    row("nm", "--plugin", ""),
    row("objdump", "--plugin", ""),
    row("yq", "--inplace --split-exp -i -s", "Iop"),
    row("xmllint", "--output --shell -o", ""),
    row(
        "tar",
        "--checkpoint-action --to-command --use-compress-program --rsh-command \
         --rmt-command --info-script --new-volume-script --files-from --index-file \
         --listed-incremental --volno-file -I -F -T -g",
        "CHKLNVXbf",
    ),
    row("zip", "--unzip-command -TT", ""),
    row(
        "rsync",
        "--rsh --rsync-path --log-file --write-batch --only-write-batch --daemon --config \
         -e",
        "BTfM",
    ),
    row("scp", "-S -o -F -D", "JMPXcil"),
    row("sftp", "-S -D -b -o -F", "BJPRXcils"),
    row(
        "man",
        "--pager --html --config-file --manpath --local-file --preprocessor --troff-device \
         --gxditview --prompt -P -H -B -C -M -l -p -T -X -r",
        "ELRems",
    ),
    row("info", "--output --dribble --restore --init-file -o", "dfkn"),
    row(
        "go",
        "-exec -toolexec -vettool -overlay -coverprofile -cpuprofile -memprofile \
         -blockprofile -mutexprofile -trace -outputdir",
        "",
    ),
    row("cargo", "--config --manifest-path=..", ""),
    row("make", "--file --makefile --directory --include-dir --eval -f -C -I -E", "jloW"),
    row(
        "curl",
        "--output --output-dir --remote-name --remote-name-all --remote-header-name \
         --config --dump-header --cookie-jar --trace --trace-ascii --stderr --libcurl \
         --hsts --alt-svc --etag-save --ssl-sessions --engine -o -O -J -K -D -c",
        "ACEFHPQTUXYbdehmrtuwxyz",
    ),
    row(
        "wget",
        "--execute --use-askpass --config --output-document --output-file --append-output \
         --directory-prefix --save-cookies --warc-file --rejected-log --hsts-file -e -O -o \
         -a -P",
        "ABDIQRTUXiltw",
    ),
    row("ssh", "-o -F -E -I", "BDJLOPQRSWbceilmpw"),
    row("pip", "--python --log --log-file", ""),
    row(
        "npm",
        "--script-shell --node-options --userconfig --globalconfig --prefix --browser \
         --viewer --editor --cwd --dir -C",
        "",
    ),
    row("svn", "--diff-cmd --diff3-cmd --editor-cmd --config-dir --config-option", ""),
    row("hg", "--config --repository --cwd --debugger -R extdiff", "IXdlmru"),
    row("jj", "--config --config-file --config-toml --repository --tool -R", "TmnOr"),
    row("ugrep", "--filter --pager --view --config --save-config", ""),
    row("fzf", "--preview --bind --listen --listen-unsafe --with-shell --history", ""),
    row("delta", "--pager --config --diff-args -@", ""),
    row(
        "pandoc",
        "--filter --lua-filter --defaults --pdf-engine --extract-media --data-dir --output \
         --log -F -L -d -o",
        "ABDHMTVcfrtw",
    ),
    row("pygmentize", "-x -o", "FLNOPSafl"),
    row("split", "--filter", ""),
    row("sqlite3", "-cmd -init -A", ""),
    row("duckdb", "-cmd -init -f -file -ui -unsigned", "*"),
    row("kubectl", "--kubeconfig --profile-output set-credentials", ""),
    row("helm", "--kubeconfig --post-renderer --output-dir plugin", ""),
    row(
        "cloc",
        "--extract-with --config --out --report-file --vcs --counted --ignored --found \
         --categorized --sql --write-lang-def --write-lang-def-incl-dup --strip-comments \
         --strip-code --diff-alignment",
        "",
    ),
    row("scc", "--output --format-multi -o", "fisxMN"),
    row("ast-grep", "--update-all --interactive --config -U -i -c", "prlsABC"),
    row("comby", "-i -in-place -review -editor -config -rg", "*"),
    row("semgrep", "--autofix --output --*-output --allow-local-builds -a -o", "cefljm"),
    row("pylint", "--init-hook --load-plugins --*import-graph --rcfile=..", ""),
    row("mypy", "--python-executable --install-types --junit-xml --*-report --config-file=..", ""),
    row(
        "pytest",
        "--junit-xml --junitxml --basetemp --pastebin --debug --html --csv --report-log \
         --rootdir=.. --confcutdir=.. --cov-config=.. -c=..",
        "Wkmnopr",
    ),
    row("ruff", "-o", ""),
    row("bandit", "-o", "abcfnpstx"),
    row(
        "eslint",
        "--rulesdir --resolve-plugins-relative-to --plugin --parser --format=/ --config=.. \
         -o -f=/ -c=..",
        "",
    ),
    row(
        "stylelint",
        "--custom-formatter --custom-syntax --plugin --plugins --config=.. -o -c=..",
        "f",
    ),
    row("prettier", "--plugin --config=..", ""),
    row("rubocop", "--require --plugin -o -r", "cf"),
    row("rspec", "-o", "ftePIrj"),
    row("phpstan", "--autoload-file --generate-baseline -a -b", "clm"),
    row(
        "phpunit",
        "--log-* --coverage-html --coverage-clover --coverage-xml --coverage-php \
         --testdox-html --testdox-text --prepend --bootstrap=.. -c=..",
        "d",
    ),
    row("golangci-lint", "--*-path --*.path", ""),
    row("clang-tidy", "-load -export-fixes -store-check-profile", "*"),
    row("cppcheck", "--addon --addon-python --dump --plist-output --cppcheck-build-dir", ""),
    row("gofmt", "-r -cpuprofile", "*"),
    row(
        "terraform",
        "-out -generate-config-out -state-out -backup -plugin-dir -from-module -chdir=.. \
         --tf-path --terragrunt-tfpath",
        "*",
    ),
    row("trivy", "-o plugin", "cfstv"),
    row("aws", "configure", ""),
    row("groff", "-U -F -M -X -l", "DIKLPTWdfmnorw"),
    row("psql", "--output --file --log-file -o -f -L", "FPRTUVcdhpv"),
    row("pg_dump", "--file -f", "EFNSTUZdhjnptw"),
    row(
        "mysql",
        "--pager --tee --delimiter --named-commands --defaults-file --defaults-extra-file \
         --plugin-dir -G",
        "DPSehpu",
    ),
    row(
        "mysqldump",
        "--result-file --tab --defaults-file --defaults-extra-file --plugin-dir -r -T",
        "PShpuw",
    ),
    row("redis-cli", "--eval --rdb --functions-rdb", ""),
    row(
        "mvn",
        "--log-file -l --file=.. --settings=.. --global-settings=.. --toolchains=.. -f=.. \
         -s=.. -gs=.. -t=..",
        "DPTabcegiknopru",
    ),
    row(
        "gradle",
        "--init-script --settings-file --build-file --include-build --gradle-user-home \
         --project-dir=.. -I -b -c -g -p=..",
        "DPx",
    ),
    row(
        "ctest",
        "--output-log --output-junit --script --script-new-process --build-and-test \
         --build-makeprogram -O -S -SP",
        "*",
    ),
    row("just", "--justfile --working-directory --shell --shell-arg --chooser --edit -f -d -e", ""),
    row("task", "--taskfile --dir -t -d", "Co"),
    row("rake", "--rakefile --execute --require --libdir -f -e -E -p -r -I -R", "TWj"),
    row("bazel", "--run_under --bazelrc --script_path --profile --override_* --build_event_*", ""),
    row("dotnet", "--test-adapter-path --diag", ""),
    row("tcpdump", "-w -z", "BCEFGMQTVWcijmrsy"),
    row("nmap", "--script --datadir --servicedb --stylesheet -oN -oX -oG -oS -oA", "*"),
    row(
        "openssl",
        "-out -keyout -writerand -engine -provider-path -config -sess_out -keylogfile",
        "*",
    ),
    row(
        "gpg",
        "--options --homedir --agent-program --dirmngr-program --photo-viewer --exec-path \
         --status-file --logger-file --attribute-file -o",
        "Nru",
    ),
    row("nc", "--exec --sh-exec --lua-exec -e -c -o", "IMOPTVWXimpqswx"),
    row("http", "--download --session -o", "Aps"),
    row("dot", "-o -O", "AEGKNTln"),
    row("xmlstarlet", "-L", ""),
    row("xsltproc", "-o", ""),
    row("jaq", "-i", "Lf"),
    row("sops", "exec-env exec-file edit -i", ""),
    row("apt", "--option --config-file -o -c", "at"),
    row("rpm", "--pipe --eval --define --load --macros --rcfile -E -D", ""),
    row("dpkg", "--pre-invoke --post-invoke --status-logger --log --admindir", ""),
    row("gh", "--dir --output -D -O", "BFHLRSTabfjlqt"),
    row("jest", "--config=.. --globalSetup --globalTeardown --reporters=/ --reporter=/ -c=..", ""),
    row("ninja", "-C=.. -f=..", "jkl"),
    row(
        "exiftool",
        "-if -config -w -W -textOut -tagOut -o -out -execute -@ -p -printFormat -api \
         -stay_open -common_args -tagsFromFile -overwrite_original \
         -overwrite_original_in_place -delete_original -restore_original",
        "*",
    ),
    row("actionlint", "-shellcheck -pyflakes -init-config -config-file=..", "*"),
    row("hyperfine", "--export-*", ""),
    row("gitleaks", "--report-path --log-opts --config=.. -r -c=..", "bfil"),
    row("syft", "--file --config=.. -c=..", "ost"),
    row("grype", "--file --config=.. -c=..", "ofst"),
    row(
        "mysqlbinlog",
        "--result-file --defaults-file --defaults-extra-file --plugin-dir -r",
        "PSdhjopu",
    ),
    row("mongoexport", "--config=.. -o", "cdfhpqu"),
    row("mongodump", "--archive --config=.. -o", "cdhpqu"),
    row("sqlcmd", "-o -i", "CHPQSUYadhlqstvwy"),
    row("coverage", "--rcfile=.. --data-file=.. --directory=.. -o -d=..", ""),
    row(
        "tsc",
        "-out -outFile -tsBuildInfoFile -generateTrace -generateCpuProfile -outDir=.. \
         -declarationDir=.. -project=.. -build=.. -p=.. -b=..",
        "*",
    ),
    row("perf", "-o", "CFTcegpt"),
    row("aria2c", "--dir --log --save-session --save-cookies --conf-path --on-* -o -d -l", "jsx"),
    row("yt-dlp", "--paths --config-locations --downloader --plugin-dirs --cookies -o -P", "frU"),
    row("identify", "-write", "*"),
    row("tidy", "-o -output -m -modify -f -file -config", "*"),
    row("lynx", "-cfg -editor -cmd_script -cmd_log -lss", "*"),
    row("ncdu", "-o", "f"),
    row("checkov", "--external-checks-dir --external-checks-git", ""),
    row("cosign", "--output-* --bundle", ""),
    row("protoc", "--*_out --plugin -o", "I"),
    row("phpcs", "--report-* --bootstrap --standard=..", ""),
    row("ktlint", "--reporter --ruleset -R", ""),
    row("k6", "--summary-export -o", "adisu"),
    row("ab", "-g -e", "ACHPTXbcfmnpstuvw"),
    row("wrk", "--script -s", "HTcdt"),
    row("vegeta", "-output", "*"),
];

/// Long options that mean the same in programs that are not in the table. `*` is any text; `-`, `_` and
/// case are ignored.
pub const EVERYWHERE: &[&str] = &[
    "--*output-file",
    "--*file-output",
    "--*out-file",
    "--*log-file",
    "--*report-file",
    "--*result-file",
    "--*results-file",
    "--*cache-file",
    "--*output-path",
    "--*report-path",
    "--cache-location",
    "--in-place",
    "--pager",
    "--editor",
    "--exec",
    "--*-command",
    "--*-cmd",
];

/// The same for long options that name a place to write to, if it is outside the current directory.
pub const OUTSIDE: &[&str] = &[
    "--*out-dir",
    "--*output-dir",
    "--*output-directory",
    "--*report-dir",
    "--*target-dir",
    "--*build-dir",
    "--*cache-dir",
    "--*log-dir",
    "--coverage-directory",
];

/// What follows `--output` if it does not name a file.
pub const FORMATS: &[&str] = &[
    "-", "compact", "csv", "full", "json", "jsonl", "markdown", "ndjson", "none", "plain",
    "pretty", "raw", "sarif", "short", "table", "text", "tsv", "wide", "xml", "yaml",
];

/// Programs that run the program which their arguments name. That program's options count too.
pub const WRAPPERS: &[&str] = &[
    "arch",
    "ash",
    "bash",
    "builtin",
    "bundle",
    "bunx",
    "busybox",
    "bwrap",
    "caffeinate",
    "chroot",
    "chrt",
    "command",
    "csh",
    "dash",
    "direnv",
    "doas",
    "docker",
    "eatmydata",
    "env",
    "exec",
    "fakeroot",
    "firejail",
    "fish",
    "flock",
    "genv",
    "gtime",
    "gtimeout",
    "hyperfine",
    "ionice",
    "ksh",
    "linux32",
    "linux64",
    "ltrace",
    "mise",
    "nice",
    "nohup",
    "npx",
    "nsenter",
    "numactl",
    "parallel",
    "pdm",
    "pipx",
    "podman",
    "poetry",
    "proxychains",
    "runuser",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "sg",
    "sh",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "tcsh",
    "time",
    "timeout",
    "torsocks",
    "toybox",
    "unbuffer",
    "unshare",
    "uv",
    "uvx",
    "watch",
    "xargs",
    "xvfb-run",
    "zsh",
];
