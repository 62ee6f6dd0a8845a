// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/pathglob"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/tool"
)

// check finds values that fit the schema and are still invalid.
func (f *File) check(found *problems) {
	f.checkArgs(found)
	f.checkSections(found, "/sections", f.Sections)
	if n := dollars(f.Sections); n > maxDollars {
		found.add("/sections", fmt.Sprintf("the texts have %d placeholders and dollar signs, and may have %d", n, maxDollars), "put long texts into files that are mounted")
		return
	}
	f.checkTools(found)
	f.checkRules(found)
	f.checkMounts(found)
	f.checkIsolation(found)
	f.checkServers(found)
	f.checkCompletion(found)
	f.checkFeedback(found)
	if len(found.all) > 0 {
		return
	}
	b := f.builder(f.samples())
	b.template()
	found.all, found.more = append(found.all, b.all...), found.more+b.more
}

// samples are values with which the prompt can be built, though not used.
func (f *File) samples() map[string]string {
	all := map[string]string{}
	for name := range f.Args {
		all[name] = ""
	}
	return all
}

func (f *File) checkArgs(found *problems) {
	for _, name := range slices.Sorted(maps.Keys(f.Args)) {
		arg, here := f.Args[name], at("/args", name)
		plainArg := Arg{Type: arg.Type}
		for i, choice := range arg.Enum {
			if err := plainArg.fits(choice); err != nil {
				found.add(at(here+"/enum", i), err.Error(), "write values of the type, texts in quotes")
			}
		}
		if arg.Default == nil {
			continue
		}
		if err := arg.fits(arg.Default); err != nil {
			found.add(here+"/default", err.Error(), "write a value of the type, texts in quotes")
		}
	}
}

func (f *File) checkSections(found *problems, pointer string, list []Section) {
	keys := map[string]bool{}
	for i, s := range list {
		here := at(pointer, i)
		if keys[s.Key] {
			found.add(here+"/key", fmt.Sprintf("two sections side by side have the key %q", s.Key), "give one of them another key")
		}
		keys[s.Key] = true
		if s.Visibility == prompt.Summary && s.Summary == "" {
			found.add(here+"/visibility", "the section has no summary to show", "write one under summary")
		}
		for _, name := range slices.Sorted(maps.Keys(s.When)) {
			arg, known := f.Args[name]
			if !known {
				found.add(at(here+"/when", name), "there is no argument "+name, f.known())
			} else if err := arg.fits(s.When[name]); err != nil {
				found.add(at(here+"/when", name), err.Error(), "name a value that the argument can have: "+arg.Usage())
			}
		}
		f.checkSections(found, here+"/children", s.Children)
	}
}

func dollars(list []Section) int {
	n := 0
	for _, s := range list {
		n += strings.Count(s.Text, "$") + strings.Count(s.Summary, "$") + dollars(s.Children)
	}
	return n
}

// checkTools finds names that no tool has: they would leave the agent without the tool, or a tool without its rule, and no
// error would follow. Of an MCP server only the name is known here.
func (f *File) checkTools(found *problems) {
	known := tool.KnownNames{Catalogue: catalogue.Tools(), Servers: slices.Collect(maps.Keys(f.Servers)), Also: f.Tools.Unknown, Option: "tools.unknown"}
	known.Servers = append(known.Servers, tool.DefaultServerName)
	check := func(pointer, name string) {
		if err := known.Check(name); err != nil {
			found.fail(pointer, err)
		}
	}
	for pointer, names := range map[string][]string{
		"/tools/allow": f.Tools.Allow, "/tools/deny": f.Tools.Deny,
		"/policy/allow": f.Policy.Allow, "/policy/ask": f.Policy.Ask, "/policy/deny": f.Policy.Deny,
	} {
		for i, name := range names {
			check(at(pointer, i), name)
		}
	}
	for name, others := range f.Policy.RequireBefore {
		here := at("/policy/requireBefore", name)
		check(here, name)
		for i, other := range others {
			check(at(here, i), other)
		}
	}
}

func (f *File) checkRules(found *problems) {
	p := f.Policy
	for pointer, rules := range map[string]struct {
		list []string
		rule func(string) gate.RuleOptions
	}{
		"/tools/allow":  {f.Tools.Allow, func(r string) gate.RuleOptions { return gate.RuleOptions{Allow: []string{r}} }},
		"/tools/deny":   {f.Tools.Deny, func(r string) gate.RuleOptions { return gate.RuleOptions{Deny: []string{r}} }},
		"/policy/allow": {p.Allow, func(r string) gate.RuleOptions { return gate.RuleOptions{Allow: []string{r}} }},
		"/policy/ask":   {p.Ask, func(r string) gate.RuleOptions { return gate.RuleOptions{Ask: []string{r}} }},
		"/policy/deny":  {p.Deny, func(r string) gate.RuleOptions { return gate.RuleOptions{Deny: []string{r}} }},
	} {
		for i, rule := range rules.list {
			checkRule(found, at(pointer, i), rules.rule(rule))
		}
	}
}

func checkRule(found *problems, pointer string, rule gate.RuleOptions) {
	if _, err := gate.New(gate.KnowsAgent(catalogue.Tools()), gate.Rules(rule)); err != nil {
		found.note(pointer, err.Error(), `write a rule such as Read, "Read(/src/**)" or "Bash(git log *)"`).Err = err
	}
}

// target is the path of a mount in the workspace.
func (m Mount) target() string {
	if m.As != "" {
		return path.Clean(m.As)
	}
	return path.Base(filepath.ToSlash(m.Path))
}

func (f *File) checkMounts(found *problems) {
	for i, m := range f.Mounts {
		here, target := at("/mounts", i), m.target()
		checkGlobs(found, here+"/include", m.Include)
		checkGlobs(found, here+"/exclude", m.Exclude)
		if !filepath.IsLocal(filepath.FromSlash(target)) || target == "." {
			where := here + "/as"
			if m.As == "" {
				where = here + "/path"
			}
			found.add(where, fmt.Sprintf("%q is not a path in the workspace", target), "set the path of the copy, as in as: project")
			continue
		}
		for j, other := range f.Mounts[:i] {
			if within(target, other.target()) || within(other.target(), target) {
				found.add(here, fmt.Sprintf("its path overlaps that of mounts[%d]: %s", j, other.target()), "give it another path with as")
			}
		}
	}
}

func checkGlobs(found *problems, pointer string, globs []string) {
	for i, glob := range globs {
		if _, err := pathglob.New([]string{glob}, nil); err != nil {
			found.fail(at(pointer, i), err)
		}
	}
}

func within(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

func (f *File) level() isolation.Level {
	if f.Isolation.Level == nil {
		return isolation.LevelCell
	}
	return *f.Isolation.Level
}

func (f *File) checkIsolation(found *problems) {
	n := f.Isolation.Network
	if f.level() == isolation.LevelHost && (len(n.Domains) > 0 || n.Localhost) {
		found.add("/isolation/network", "it has no meaning with level: host, where nothing is kept from the agent", "leave one of the two out")
		return
	}
	for i, domain := range n.Domains {
		if err := isolation.WithDomains(domain).Validate(isolation.LevelCell, runtime.GOOS); err != nil {
			found.note(at("/isolation/network/domains", i), fmt.Sprintf("%q is no host", domain), `write a name such as example.com or "*.example.com"`).Err = err
		}
	}
}

// checkServers refuses servers that the agent cannot use within its isolation.
func (f *File) checkServers(found *problems) {
	for _, name := range slices.Sorted(maps.Keys(f.Servers)) {
		s, here := f.Servers[name], at("/servers", name)
		if s.Timeout > 0 && time.Duration(s.Timeout) < time.Second {
			found.add(here+"/timeout", "it is less than a second", "give the server more time")
		}
		if ours := tool.NewMCPName(tool.DefaultServerName, "").String(); ident.PresentTool(tool.NewMCPName(name, "").String()) == ours {
			found.add(here, "the name is that of the server with the tools of the prompt", "give the server another name")
		}
		if f.Tools.Allow != nil && !slices.ContainsFunc(f.Tools.Allow, func(t string) bool { return within(strings.ReplaceAll(t, "__", "/"), "mcp/"+name) }) {
			found.add(here, "none of its tools is in tools.allow", "add "+tool.NewMCPName(name, "").String()+" there, or leave the server out")
		}
		if s.URL != "" {
			f.checkURL(found, here+"/url", s.URL)
		} else {
			f.checkCommand(found, here+"/command", s.Command[0])
		}
	}
}

func (f *File) checkURL(found *problems, pointer, address string) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		found.add(pointer, "it is not an address", "write one such as https://tools.example.com/mcp")
		return
	}
	if u.User != nil {
		found.add(pointer, "it has a password", "leave it out: a file is no place for secrets")
	}
	host := u.Hostname()
	local := host == "localhost" || host == "127.0.0.1" || host == "::1"
	switch {
	case f.level() == isolation.LevelHost:
	case local && !f.Isolation.Network.Localhost:
		found.add(pointer, "the agent cannot reach "+host+" from within its isolation", "add isolation: {network: {localhost: true}}")
	case !local && !slices.ContainsFunc(f.Isolation.Network.Domains, func(d string) bool { return covers(d, host) }):
		found.add(pointer, "the agent cannot reach "+host+" from within its isolation", "add it to isolation.network.domains")
	}
}

// covers reports whether an entry of the domains is about a host.
func covers(domain, host string) bool {
	domain, host = strings.ToLower(domain), strings.ToLower(host)
	if rest, wild := strings.CutPrefix(domain, "*."); wild {
		return strings.HasSuffix(host, "."+rest)
	}
	return domain == "*" || domain == host
}

func (f *File) checkCommand(found *problems, pointer, program string) {
	switch {
	case strings.TrimSpace(program) == "":
		found.add(at(pointer, 0), "it names no program", "write the program and its arguments as a list")
	case f.level() == isolation.LevelHost || !strings.Contains(program, "/"):
	case path.IsAbs(program):
		found.add(at(pointer, 0), program+" is a path of the host, which the agent does not see from within its isolation", "write the bare name of a program of the system, or mount the program")
	case len(f.Mounts) > 0 && !slices.ContainsFunc(f.Mounts, func(m Mount) bool { return within(path.Clean(program), m.target()) }):
		found.add(at(pointer, 0), program+" is in no mount, and the agent sees nothing else", "mount it, and write its path in the workspace")
	}
}

func (f *File) checkCompletion(found *problems) {
	for i, name := range f.Completion.Files {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			found.add(at("/completion/files", i), "it is outside of the folder that the agent works in", "write a relative path")
		}
	}
	if c := f.Completion.Command; len(c) > 0 && strings.TrimSpace(c[0]) == "" {
		found.add("/completion/command/0", "it names no program", "write the program and its arguments as a list")
	}
}

func (f *File) checkFeedback(found *problems) {
	reported := false
	for i, b := range f.Feedback {
		if b.Deadline > 0 && reported {
			found.add(at("/feedback", i)+"/deadline", "the remaining time is reported already", "leave one of the two out")
		}
		reported = reported || b.Deadline > 0
		if b.OnFileCreated != "" && !filepath.IsLocal(filepath.FromSlash(b.OnFileCreated)) {
			found.add(at("/feedback", i)+"/onFileCreated", "it is outside of the folder that the agent works in", "write a relative path")
		}
	}
}
