// SPDX-License-Identifier: Apache-2.0

package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// layers is the whole drawing: each package of ours, and the packages of ours that it may import.
// A name that ends in /* means everything below it. The most exact name for a package decides.
var layers = map[string][]string{
	"advice":            {}, // every package may import it
	"schema":            {},
	"launch":            {"internal/*"}, // programs of agents: below every wire client
	"claude/transcript": {"internal/*"},
	// The suite that every store must pass; public, so that other stores can run it.
	"claude/transcript/storetest": {"claude/transcript"},
	"claude/script":               {"internal/*"},
	"claude":                      {"schema", "claude/transcript", "launch", "internal/*"},
	"claude/claudetest":           {"claude", "claude/script", "launch", "internal/*"},
	"event":                       {},
	"tool":                        {"event", "schema", "internal/*"},
	// Tools made of tools; no package of the core imports it.
	"tool/compose": {"tool", "schema", "internal/*"},
	"tool/mcp":     {"tool", "event", "schema", "internal/*"},
	"gate":         {"event", "tool", "schema", "internal/*"},
	"session":      {"event", "tool", "schema", "internal/*"},
	// The suite that every store must pass.
	"session/storetest": {"session", "event"},
	"guard":             {"session", "gate", "tool", "event", "internal/*"},
	"prompt":            {"guard", "session", "gate", "tool", "schema", "event", "internal/*"},
	// Overrides in files; no package of the core imports it.
	"prompt/overrides": {"prompt", "tool", "internal/*"},
	"gateway":          {"guard", "event", "internal/*", "gateway/internal/*"},
	// A model API that was invented for tests.
	"gateway/gatewaytest": {"gateway"},
	// The proxy for what tools reach; Bedrock alone links AWS.
	"gateway/proxy":   {"gateway", "event", "internal/*"},
	"gateway/bedrock": {"gateway", "event", "internal/*", "gateway/internal/*"},
	"isolation":       {"gateway", "gateway/proxy", "guard", "event", "launch", "internal/*", "isolation/internal/*"},
	"workspace":       {"prompt", "session", "tool", "event", "internal/*", "workspace/internal/*"},
	"agent":           {"workspace", "guard", "event", "tool", "gate", "internal/*"},
	// File systems for tools, and the suite that each must pass; no package of the core imports them.
	"workspace/files":           {"workspace", "tool", "internal/*"},
	"workspace/files/filestest": {"workspace/files", "workspace"},
	// The suite that every adapter must pass, and an adapter that follows a script.
	"agent/agenttest": {"agent", "gate", "tool", "event"},
	// An adapter knows no session: it asks its host.
	"agent/claudecode/claudecell": {"isolation", "gateway", "claude"},
	"agent/claudecode":            {"agent", "agent/claudecode/catalogue", "agent/claudecode/claudecell", "workspace", "isolation", "gateway", "guard", "gate", "event", "tool", "claude", "claude/transcript", "schema", "internal/*"},
	// The catalogue of the tools of Claude Code: data, for packages that judge or show their calls.
	"agent/claudecode/catalogue": {"session", "tool", "event"},
	// Spans and metrics of what happens; it alone, and the root that holds its options, link OpenTelemetry.
	"telemetry": {"gateway", "event"},
	// The root: a prompt in, a typed answer out. It is every adapter's host, and knows none of them.
	".": {"telemetry", "agent", "workspace", "prompt", "guard", "session", "gate", "gateway", "tool", "schema", "event", "internal/*"},
	// Kept runs: a reader of the log of sessions. It knows no agent.
	"record": {".", "agent", "workspace", "session", "guard", "gate", "gateway", "isolation", "event", "internal/*"},
	// Agents that are kept as files. It knows no adapter.
	"agentfile": {".", "agent", "agent/claudecode/catalogue", "workspace", "prompt", "isolation", "guard", "gate", "tool", "schema", "internal/*"},
	// Runs on NATS JetStream. It knows no adapter and keeps no files of its own.
	"fleet":           {".", "agent", "workspace", "prompt", "guard", "session", "gate", "tool", "event", "internal/*"},
	"fleet/fleettest": {},
	// The index links SQLite, and the command alone imports it.
	"record/index": {"record", ".", "event", "session", "gateway", "isolation", "internal/*"},
	// The API and the page of runs: it reads kept runs by their index, and knows no agent.
	"server": {"record", "record/index", ".", "session", "gate", "event", "schema", "internal/*"},
	// The view of a run: events in, lines out. It knows no agent.
	"terminal": {".", "workspace", "isolation", "guard", "gate", "gateway", "gateway/proxy", "tool", "event", "internal/*"},
	// The suite that evaluations by every adapter must pass.
	"drovertest": {".", "agent", "workspace", "prompt", "guard", "session", "tool", "event"},
	// Programs may use everything; internal packages know of nothing public, so that every public
	// one may use them.
	"cmd/*":      {"*"},
	"examples/*": {"*"},
	"bench/*":    {"*"},
	"internal/*": {"internal/*"},
	// What one package alone needs is below it.
	"claude/internal/*":    {"internal/*"},
	"gateway/internal/*":   {"internal/*"},
	"isolation/internal/*": {"internal/*"},
	"workspace/internal/*": {"workspace/internal/*", "internal/*"},
	// Programs of developers. The product imports none of them.
	"tools/*": {"internal/*"},
}

func TestLayers_ImportsPointDown(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, arrow := range arrows(t, goos) {
			if problem := judge(arrow[0], arrow[1]); problem != "" {
				t.Errorf("%s: %s", goos, problem)
			}
		}
	}
}

// maxInternal bounds the packages in internal/. What one package alone needs is below that package.
const maxInternal = 15

// maxRootFiles bounds the source files of the root.
const maxRootFiles = 10

// The root is read whole: few files, without those of tests.
func TestLayers_RootHasFewFiles(t *testing.T) {
	files, err := filepath.Glob("../../*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if len(files) == 0 || len(files) > maxRootFiles {
		t.Errorf("the root has %d files, want at most %d: %v", len(files), maxRootFiles, files)
	}
}

func TestLayers_FewInternalPackages(t *testing.T) {
	var found []string
	for dir := range packages(t) {
		if strings.HasPrefix(dir, "internal/") {
			found = append(found, dir)
		}
	}
	slices.Sort(found)
	if len(found) == 0 || len(found) > maxInternal {
		t.Errorf("internal/ has %d packages, want at most %d: %v", len(found), maxInternal, found)
	}
}

// Tests count too: what they share with the programs of developers is in internal/.
func TestLayers_NothingImportsTools(t *testing.T) {
	tools := 0
	for dir, files := range packages(t) {
		if strings.HasPrefix(dir, "tools/") {
			tools++
			continue
		}
		for _, f := range files {
			for _, imported := range f.file.Imports {
				if strings.HasPrefix(imported.Path.Value, `"`+module+"/tools/") {
					t.Errorf("%s imports %s, a program of developers", f.name, imported.Path.Value)
				}
			}
		}
	}
	if tools == 0 {
		t.Error("there is nothing in tools/: the rule sees nothing")
	}
}

// knowNoAgent are packages that import no wire client of an agent, nor anything that does.
var knowNoAgent = []string{"event", "schema", "launch", "tool", "tool/compose", "tool/mcp", "gate", "session", "guard", "prompt", "prompt/overrides", "workspace", "workspace/files", "agent", "gateway", "gateway/proxy", "gateway/gatewaytest", "isolation", "telemetry", "agentfile", ".", "terminal", "agent/agenttest", "drovertest"}

func TestLayers_CoreImportsNoWireClient(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", "list", "-deps")
		for _, name := range knowNoAgent {
			cmd.Args = append(cmd.Args, "./"+name)
		}
		cmd.Dir, cmd.Env = root, append(os.Environ(), "GOOS="+goos)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go list: %v\n%s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			linked, ours := ourName(strings.TrimSpace(line))
			if ours && isOfAgent(linked) && linked != "agent/claudecode/catalogue" { // it is data only, for agent files
				t.Errorf("%s: the core imports %s, itself or through others", goos, linked)
			}
		}
	}
}

// exporters are modules that export spans and metrics. A program chooses them: no package brings them along.
var exporters = []string{"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters", "go.opentelemetry.io/proto", "google.golang.org/grpc", "google.golang.org/protobuf"}

func TestLayers_PackagesLinkNoExporter(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps")
	for dir, files := range packages(t) {
		isProgram := strings.HasPrefix(dir, "cmd/") || strings.HasPrefix(dir, "examples/") || strings.HasPrefix(dir, "tools/") || strings.HasPrefix(dir, "bench")
		if !isProgram && slices.ContainsFunc(files, func(f parsed) bool { return !f.isTest() }) {
			cmd.Args = append(cmd.Args, "./"+dir)
		}
	}
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), module+"/telemetry\n") {
		t.Error("package telemetry is not in the list: the rule sees nothing")
	}
	for line := range strings.Lines(string(out)) {
		if slices.ContainsFunc(exporters, func(m string) bool { return strings.HasPrefix(line, m) }) {
			t.Errorf("a package links %s", strings.TrimSpace(line))
		}
	}
}

// mayLinkSQLite are the packages that link the database of kept runs: its own, the server that lists them, and programs.
var mayLinkSQLite = []string{"record/index", "server", "cmd/*"}

// mayLinkNATS are the packages that link NATS: the fleet, and programs.
var mayLinkNATS = []string{"fleet", "fleet/fleettest", "cmd/*", "examples/*", "bench", "bench/*"}

// A program that embeds Drover gets neither a database nor a message broker with it.
func TestLayers_PackagesLinkNoDatabaseAndNoBroker(t *testing.T) {
	const form = "{{.ImportPath}} {{range .Deps}}{{.}} {{end}}"
	cmd := exec.Command("go", "list", "-f", form, "./...")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	for module, may := range map[string][]string{"modernc.org/": mayLinkSQLite, "github.com/nats-io/": mayLinkNATS} {
		linking := 0
		for line := range strings.Lines(string(out)) {
			words := strings.Fields(line)
			name, _ := ourName(words[0])
			if !slices.ContainsFunc(words[1:], func(dep string) bool { return strings.HasPrefix(dep, module) }) {
				continue
			}
			linking++
			if !slices.ContainsFunc(may, func(pattern string) bool { return matches(pattern, name) }) {
				t.Errorf("%s links %s", name, module)
			}
		}
		if linking == 0 {
			t.Errorf("no package links %s: the rule sees nothing", module)
		}
	}
}

// isOfAgent reports whether a package is a wire client of an agent, an adapter, or part of one.
func isOfAgent(name string) bool {
	return slices.ContainsFunc([]string{"claude", "claude/*", "agent/claudecode", "agent/claudecode/*"}, func(pattern string) bool {
		return matches(pattern, name)
	})
}

// testsKnowNoAgent are packages whose test binaries, too, link nothing of a wire client or of an agent's adapter: they
// show that what they test works without. In that of drovertest a whole agent runs: model, gateway, cell, tools.
var testsKnowNoAgent = []string{"gateway/gatewaytest", "agent/agenttest", "drovertest"}

func TestLayers_TestBinaryLinksNoWireClient(t *testing.T) {
	for _, name := range testsKnowNoAgent {
		cmd := exec.Command("go", "list", "-deps", "-test", "./"+name)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), module+"/"+name+".test") {
			t.Fatalf("go list: %v\n%s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			if linked, ours := ourName(strings.Fields(line)[0]); ours && isOfAgent(linked) {
				t.Errorf("the test binary of %s links %s", name, linked)
			}
		}
	}
}

// arrows lists who imports whom among our packages; tests do not count. A package without imports
// of ours has an arrow to "", so that it is seen.
func arrows(t *testing.T, goos string) [][2]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOOS="+goos)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	var found [][2]string
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		from, ours := ourName(words[0])
		if !ours {
			continue
		}
		found = append(found, [2]string{from, ""})
		for _, to := range words[1:] {
			if to, ours := ourName(to); ours {
				found = append(found, [2]string{from, to})
			}
		}
	}
	return found
}

func ourName(path string) (string, bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

// judge says what is wrong with an arrow, or "".
func judge(from, to string) string {
	allowed, known := layerOf(from)
	switch {
	case !known:
		return from + " is not in the drawing: add it to layers with what it may import"
	case to != "" && to != "advice" && !slices.ContainsFunc(allowed, func(pattern string) bool { return matches(pattern, to) }):
		return from + " must not import " + to
	}
	return ""
}

func layerOf(name string) ([]string, bool) {
	if allowed, ok := layers[name]; ok {
		return allowed, true
	}
	for pattern, allowed := range layers {
		if strings.HasSuffix(pattern, "/*") && matches(pattern, name) {
			return allowed, true
		}
	}
	return nil, false
}

func matches(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

// The rule itself must be able to find fault.
func TestJudge_FindsViolations(t *testing.T) {
	cases := []struct {
		from, to string
		good     bool
	}{
		{"claude", "schema", true},
		{"claude", "internal/proc", true},
		{"claude", "claude/claudetest", false},
		{"schema", "claude", false},
		{"schema", "internal/proc", false},
		{"internal/proc", "internal/lines", true},
		{"internal/proc", "claude", false},
		{"cmd/drover", "claude/claudetest", true},
		{"isolation", "isolation/internal/jail", true},
		{"workspace", "isolation/internal/jail", false},
		{"isolation/internal/jail", "isolation", false},
		{"session", "tools/mutate", false},
		{"workspace", "claude", false},
		{"tool/mcp", "gate", false},
		{"tool/mcp", "claude", false},
		{"agent/claudecode", "tool/mcp", false}, // it would link the SDK into every program
		{"tool", "gate", false},
		{"tool", "claude", false},
		{"gate", "tool", true},
		{"gate", "claude", false},
		{"event", "tool", false},
		{"newcomer", "", false},
	}
	for _, c := range cases {
		if got := judge(c.from, c.to); (got == "") != c.good {
			t.Errorf("%s -> %s: got %q, want good %v", c.from, c.to, got, c.good)
		}
	}
}
