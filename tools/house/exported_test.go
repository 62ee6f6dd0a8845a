// SPDX-License-Identifier: Apache-2.0

package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exportedList has the exported names without a user that stay, by group, with the reason of each group.
const exportedList = "tools/house/testdata/exported.txt"

// An exported name is a type, function, variable, constant, method or field of a public package.
type exportedName struct {
	name  string // tool/mcp.Serve, tool.Registry.Execute
	owner *types.TypeName
	obj   types.Object
	tag   string
}

// TestExported_NamesHaveAUser fails for an exported name that no other package, example or page uses, unless a rule or a
// listed group justifies it. A listed name that has a user, that a rule justifies, or that does not exist, fails as well.
func TestExported_NamesHaveAUser(t *testing.T) {
	c := newChecker(t)
	for path, dir := range c.dirs {
		if len(dir.files) > 0 {
			if _, err := c.Import(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	if c.err != nil {
		t.Fatal(c.err)
	}
	names := c.exported()
	if len(names) < 1000 {
		t.Fatalf("only %d exported names found: the rule sees nothing", len(names))
	}
	listed, problems := readExportedList(read(t, exportedList))
	for _, problem := range problems {
		t.Errorf("%s: %s", exportedList, problem)
	}
	kept := c.justified(t, names, listed)
	counts := map[string]int{}
	for _, n := range names {
		why, group := kept[n.obj.Pos()], listed[n.name]
		switch {
		case why == "" && group == "":
			counts["nothing"]++
			t.Errorf("%s is exported, and no other package, example or page uses it\n  next: unexport or delete it, or list it in %s", n.name, exportedList)
		case why == "":
			counts["listed: "+group]++
		case group != "":
			t.Errorf("%s: %s needs no line: %s", exportedList, n.name, why)
		default:
			counts[why]++
		}
		delete(listed, n.name)
	}
	for name := range listed {
		t.Errorf("%s: there is no %s", exportedList, name)
	}
	for _, why := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%5d %s", counts[why], why)
	}
}

// readExportedList reads lines "# group: reason", each followed by the names of the group.
func readExportedList(text string) (listed map[string]string, problems []string) {
	listed = map[string]string{}
	group, last := "", ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if head, isHead := strings.CutPrefix(line, "# "); isHead {
			name, reason, _ := strings.Cut(head, ": ")
			if group, last = name, ""; reason == "" {
				problems = append(problems, fmt.Sprintf("group %q has no reason", name))
			}
			continue
		}
		if line == "" {
			continue
		}
		switch {
		case group == "":
			problems = append(problems, line+" has no group")
		case listed[line] != "":
			problems = append(problems, line+" is listed twice")
		case line < last:
			problems = append(problems, line+" is not in order")
		}
		listed[line], last = group, line
	}
	return listed, problems
}

func TestExported_ReadsTheList(t *testing.T) {
	listed, problems := readExportedList("a.A\n\n# one: reason\nb.A\nb.B\n# two\nb.A\nb.D\nb.C\n")
	if len(listed) != 5 || listed["b.B"] != "one" || len(problems) != 4 {
		t.Errorf("got %v and %q", listed, problems)
	}
}

// exported lists the exported names of the public packages.
func (c *checker) exported() []exportedName {
	var names []exportedName
	for _, path := range slices.Sorted(maps.Keys(c.dirs)) {
		dir := c.dirs[path]
		if !dir.isPublic() {
			continue
		}
		scope, prefix := c.done[path].Scope(), dir.rel
		if prefix == "." {
			prefix = "drover"
		}
		for _, name := range scope.Names() {
			if !token.IsExported(name) {
				continue
			}
			obj := scope.Lookup(name)
			names = append(names, exportedName{name: prefix + "." + name, obj: obj})
			if typ, ok := obj.(*types.TypeName); ok && !typ.IsAlias() {
				names = append(names, members(prefix, typ)...)
			}
		}
	}
	return names
}

// members lists the exported methods and fields of a type. An embedded field is part of its type's declaration.
func members(prefix string, typ *types.TypeName) []exportedName {
	var names []exportedName
	add := func(obj types.Object, tag string) {
		if obj.Exported() {
			names = append(names, exportedName{name: prefix + "." + typ.Name() + "." + obj.Name(), owner: typ, obj: obj, tag: tag})
		}
	}
	named := typ.Type().(*types.Named)
	for method := range named.Methods() {
		add(method, "")
	}
	switch under := named.Underlying().(type) {
	case *types.Struct:
		for i := range under.NumFields() {
			if field := under.Field(i); !field.Embedded() && field.Pkg() == typ.Pkg() {
				add(field, under.Tag(i))
			}
		}
	case *types.Interface:
		for method := range under.ExplicitMethods() {
			add(method, "")
		}
	}
	return names
}

// justified returns, by position, what uses or justifies each exported name.
func (c *checker) justified(t *testing.T, names []exportedName, listed map[string]string) map[token.Pos]string {
	used := c.uses()
	written, seeds := docNames(t), map[string]bool{}
	for _, page := range []string{"spec/seed-names.md", "spec/seed-map.md"} {
		for _, m := range inlineCode.FindAllStringSubmatch(read(t, page), -1) {
			seeds[m[1]] = true
		}
	}
	contracts := c.interfaces()
	enums, payload, wire := c.enumerations(used), c.payload(t), c.wire(contracts)
	kept := map[token.Pos]string{}
	for _, n := range names {
		short := n.name[strings.LastIndexByte(n.name, '/')+1:] // the package by its name, as code has it
		why := ""
		switch {
		case used[n.obj.Pos()]:
			why = "used by code"
		case written.has(n):
			why = "used by a page"
		case seeds[short]:
			why = "rule: a seed row"
		case isEncoded(n.tag):
			why = "rule: a field that is encoded"
		case n.owner != nil && types.IsInterface(n.owner.Type()):
			why = "rule: a method of an interface"
		case n.owner != nil && completes(n, contracts):
			why = "rule: completes an interface"
		case enums[n.obj.Pos()]:
			why = "rule: the rest of an enumeration"
		case isVariant(n.obj, contracts):
			why = "rule: a variant of a sealed interface"
		case isPayload(n.obj, payload):
			why = "rule: the payload of an event"
		case c.isImplementedElsewhere(n.obj):
			why = "rule: an interface that another package implements"
		case n.owner != nil && wire[n.owner.Pos()] && isField(n.obj):
			why = "rule: a field of a message of the wire protocol"
		}
		if why != "" {
			kept[n.obj.Pos()] = why
		}
	}
	// A type that an exported declaration names is exported with it.
	for grown := true; grown; {
		grown = false
		for _, n := range names {
			_, isType := n.obj.(*types.TypeName)
			if kept[n.obj.Pos()] == "" && (isType || listed[n.name] == "") {
				continue
			}
			for _, named := range mentioned(n.obj) {
				if kept[named.Pos()] == "" {
					kept[named.Pos()], grown = "rule: a type that an exported declaration names", true
				}
			}
		}
	}
	return kept
}

func isField(obj types.Object) bool {
	v, ok := obj.(*types.Var)
	return ok && v.IsField()
}

// enumerations finds the constants that belong to one that is used: of the same type, or of the same declaration.
func (c *checker) enumerations(used map[token.Pos]bool) map[token.Pos]bool {
	rest := map[token.Pos]bool{}
	for path, pkg := range c.done {
		of, whole := map[types.Type][]types.Object{}, map[types.Type]bool{}
		for _, name := range pkg.Scope().Names() {
			obj, ok := pkg.Scope().Lookup(name).(*types.Const)
			if !ok {
				continue
			}
			if _, ok := obj.Type().(*types.Named); ok {
				of[obj.Type()] = append(of[obj.Type()], obj)
				whole[obj.Type()] = whole[obj.Type()] || used[obj.Pos()]
			}
		}
		for typ := range whole {
			for _, obj := range of[typ] {
				rest[obj.Pos()] = whole[typ]
			}
		}
		for _, file := range c.dirs[path].files {
			for _, decl := range file.Decls {
				if group, ok := decl.(*ast.GenDecl); ok && group.Tok == token.CONST {
					markGroup(rest, used, group)
				}
			}
		}
	}
	return rest
}

func markGroup(rest, used map[token.Pos]bool, group *ast.GenDecl) {
	var members []token.Pos
	for _, spec := range group.Specs {
		for _, name := range spec.(*ast.ValueSpec).Names {
			members = append(members, name.Pos())
		}
	}
	if slices.ContainsFunc(members, func(pos token.Pos) bool { return used[pos] }) {
		for _, pos := range members {
			rest[pos] = true
		}
	}
}

// payload is the interface of what events carry. A reader of a stream or log gets any type that implements it.
func (c *checker) payload(t *testing.T) *types.Interface {
	t.Helper()
	return c.done[module+"/event"].Scope().Lookup("Payload").Type().Underlying().(*types.Interface)
}

func isPayload(obj types.Object, payload *types.Interface) bool {
	typ, ok := obj.(*types.TypeName)
	return ok && !types.IsInterface(typ.Type()) && types.Implements(types.NewPointer(typ.Type()), payload)
}

// isImplementedElsewhere reports whether a type of another package implements an exported interface.
func (c *checker) isImplementedElsewhere(obj types.Object) bool {
	typ, ok := obj.(*types.TypeName)
	if !ok || !types.IsInterface(typ.Type()) || typ.Type().Underlying().(*types.Interface).NumMethods() == 0 {
		return false
	}
	for _, pkg := range c.done {
		for _, name := range pkg.Scope().Names() {
			other, ok := pkg.Scope().Lookup(name).(*types.TypeName)
			if ok && pkg != typ.Pkg() && !types.IsInterface(other.Type()) && types.Implements(types.NewPointer(other.Type()), typ.Type().Underlying().(*types.Interface)) {
				return true
			}
		}
	}
	return false
}

// wire finds the types of package claude that the protocol of the CLI has: the variants of its sealed interfaces, and
// the types of their fields.
func (c *checker) wire(contracts []*types.TypeName) map[token.Pos]bool {
	found := map[token.Pos]bool{}
	pkg := c.done[module+"/claude"]
	var visit func(*types.TypeName)
	visit = func(typ *types.TypeName) {
		if typ.Pkg() != pkg || found[typ.Pos()] {
			return
		}
		found[typ.Pos()] = true
		if under, ok := typ.Type().Underlying().(*types.Struct); ok {
			for field := range under.Fields() {
				for _, named := range mentioned(field) {
					visit(named)
				}
			}
		}
	}
	for _, name := range pkg.Scope().Names() {
		if typ, ok := pkg.Scope().Lookup(name).(*types.TypeName); ok && typ.Exported() && isVariant(typ, contracts) {
			visit(typ)
		}
	}
	return found
}

// isEncoded reports whether a field's tag names it for an encoding, which sees exported fields only.
func isEncoded(tag string) bool {
	for _, format := range []string{"json", "yaml"} {
		if name, ok := reflect.StructTag(tag).Lookup(format); ok && name != "-" {
			return true
		}
	}
	return false
}

// mentioned lists the named types in an object's declaration.
func mentioned(obj types.Object) []*types.TypeName {
	var found []*types.TypeName
	seen := map[types.Type]bool{}
	var visit func(types.Type)
	visit = func(typ types.Type) {
		if typ == nil || seen[typ] {
			return
		}
		seen[typ] = true
		switch typ := typ.(type) {
		case *types.Named:
			found = append(found, typ.Obj())
			for arg := range typ.TypeArgs().Types() {
				visit(arg)
			}
		case *types.Alias:
			found = append(found, typ.Obj())
			visit(types.Unalias(typ))
		case *types.Pointer:
			visit(typ.Elem())
		case *types.Slice:
			visit(typ.Elem())
		case *types.Array:
			visit(typ.Elem())
		case *types.Chan:
			visit(typ.Elem())
		case *types.Map:
			visit(typ.Key())
			visit(typ.Elem())
		case *types.Tuple:
			for v := range typ.Variables() {
				visit(v.Type())
			}
		case *types.Signature:
			visit(typ.Params())
			visit(typ.Results())
			for param := range typ.TypeParams().TypeParams() {
				visit(param.Constraint())
			}
		case *types.Struct:
			for field := range typ.Fields() {
				if field.Exported() {
					visit(field.Type())
				}
			}
		case *types.Interface:
			for i := range typ.NumEmbeddeds() {
				visit(typ.EmbeddedType(i))
			}
			for method := range typ.ExplicitMethods() {
				if method.Exported() {
					visit(method.Type())
				}
			}
		case *types.Union:
			for term := range typ.Terms() {
				visit(term.Type())
			}
		}
	}
	name, isType := obj.(*types.TypeName)
	switch {
	case isType && name.IsAlias():
		visit(types.Unalias(name.Type()))
	case isType: // fields and methods are names of their own
		if under, ok := name.Type().Underlying().(*types.Struct); ok {
			for field := range under.Fields() {
				if field.Embedded() && field.Exported() {
					visit(field.Type())
				}
			}
		} else {
			visit(name.Type().Underlying())
		}
	default:
		visit(obj.Type())
	}
	return found
}

// uses finds what code uses outside of the package that declares it, by position. Tests of a package use its own names
// only in examples.
func (c *checker) uses() map[token.Pos]bool {
	used := map[token.Pos]bool{}
	for path, info := range c.infos {
		collectUses(used, path, info, nil)
	}
	for _, dir := range c.dirs {
		var examples []*ast.FuncDecl
		for _, file := range slices.Concat(dir.inTests, dir.xtTests) {
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Example") {
					examples = append(examples, f)
				}
			}
		}
		for _, info := range c.tests(dir) {
			collectUses(used, dir.path(), info, examples)
		}
	}
	return used
}

func collectUses(used map[token.Pos]bool, own string, info *types.Info, examples []*ast.FuncDecl) {
	counts := func(at token.Pos, obj types.Object) bool {
		return obj.Pkg() != nil && (obj.Pkg().Path() != own ||
			slices.ContainsFunc(examples, func(f *ast.FuncDecl) bool { return f.Pos() <= at && at < f.End() }))
	}
	for ident, obj := range info.Uses {
		if counts(ident.Pos(), obj) {
			used[obj.Pos()] = true
		}
	}
}

// interfaces lists the interfaces that types may have to satisfy: those of the repository, and of packages of others
// that the repository imports.
func (c *checker) interfaces() []*types.TypeName {
	var found []*types.TypeName
	add := func(pkg *types.Package, all bool) {
		for _, name := range pkg.Scope().Names() {
			typ, ok := pkg.Scope().Lookup(name).(*types.TypeName)
			if ok && (all || typ.Exported()) && types.IsInterface(typ.Type()) && typ.Type().Underlying().(*types.Interface).NumMethods() > 0 {
				found = append(found, typ)
			}
		}
	}
	for _, pkg := range c.done {
		add(pkg, true)
	}
	for _, path := range []string{"encoding", "encoding/json", "fmt", "io", "io/fs", "log/slog", "net", "net/http", "sort", "context", "flag"} {
		if pkg, err := c.others.Import(path); err == nil {
			add(pkg, false)
		}
	}
	found = append(found, types.Universe.Lookup("error").(*types.TypeName))
	return found
}

// asserted are methods that code looks for by an interface without a name: package errors, and package gateway.
var asserted = map[string]bool{
	"Unwrap func() error": true, "Unwrap func() []error": true, "Is func(error) bool": true, "As func(any) bool": true,
	"CloseIdleConnections func()": true, "Region func() string": true,
}

// completes reports whether a method is part of an interface that its type implements.
func completes(n exportedName, contracts []*types.TypeName) bool {
	method, ok := n.obj.(*types.Func)
	if !ok {
		return false
	}
	signature := types.TypeString(types.NewSignatureType(nil, nil, nil, unnamedVars(method.Signature().Params()), unnamedVars(method.Signature().Results()), false), nil)
	if asserted[method.Name()+" "+signature] {
		return true
	}
	return slices.ContainsFunc(contracts, func(contract *types.TypeName) bool {
		in := contract.Type().Underlying().(*types.Interface)
		has, _, _ := types.LookupFieldOrMethod(in, false, method.Pkg(), method.Name())
		return has != nil && types.Implements(types.NewPointer(n.owner.Type()), in)
	})
}

func unnamedVars(vars *types.Tuple) *types.Tuple {
	var bare []*types.Var
	for v := range vars.Variables() {
		bare = append(bare, types.NewParam(token.NoPos, nil, "", v.Type()))
	}
	return types.NewTuple(bare...)
}

// isVariant reports whether a type implements an interface of its package that no other package can implement.
func isVariant(obj types.Object, contracts []*types.TypeName) bool {
	typ, ok := obj.(*types.TypeName)
	if !ok || types.IsInterface(typ.Type()) {
		return false
	}
	return slices.ContainsFunc(contracts, func(contract *types.TypeName) bool {
		in := contract.Type().Underlying().(*types.Interface)
		isSealed := false
		for method := range in.Methods() {
			isSealed = isSealed || !method.Exported()
		}
		return isSealed && contract.Exported() && contract.Pkg() == typ.Pkg() && types.Implements(types.NewPointer(typ.Type()), in)
	})
}

// pageOf says which packages a page is about: there a name needs no package before it.
var pageOf = map[string][]string{
	"README.md": {"drover"}, "docs/evaluate.md": {"drover"}, "docs/agent-files.md": {"agentfile"}, "docs/run.md": {"agentfile"},
	"docs/agents.md": {"agent", "agent/claudecode", "agent/claudecode/claudecell", "agent/claudecode/catalogue"}, "docs/events.md": {"event"},
	"docs/gates.md": {"gate"}, "docs/gateway.md": {"gateway", "gateway/bedrock", "gateway/proxy"}, "docs/guards.md": {"guard"},
	"docs/isolation.md": {"isolation", "agent/claudecode/claudecell"}, "docs/lifecycle.md": {"claude", "launch"}, "docs/compatibility.md": {"claude"},
	"docs/model-scripts.md": {"claude/script", "claude/claudetest"}, "docs/prompts.md": {"prompt", "prompt/overrides"}, "docs/sessions.md": {"session"},
	"docs/testing.md": {"claude/claudetest", "agent/agenttest", "drovertest", "session/storetest", "claude/transcript/storetest", "workspace/files/filestest", "gateway/gatewaytest"},
	"docs/tools.md":   {"tool", "tool/compose", "tool/mcp"}, "docs/terminal.md": {"terminal"}, "docs/transcripts.md": {"claude/transcript"}, "docs/workspaces.md": {"workspace", "workspace/files"},
}

// pageNames are the names in the code of pages: as they are written, and single names by the package that a page is about.
type pageNames struct {
	written map[string]bool
	bare    map[string]map[string]bool
}

var (
	inlineCode = regexp.MustCompile("`([^`\n]+)`")
	goCode     = regexp.MustCompile("(?ms)^```go\n(.*?)^```")
	nameChain  = regexp.MustCompile(`[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*`)
)

func docNames(t *testing.T) pageNames {
	p := pageNames{map[string]bool{}, map[string]map[string]bool{}}
	for _, page := range documents(t) {
		if page != "README.md" && path.Dir(page) != "docs" {
			continue
		}
		text := read(t, page)
		for _, m := range slices.Concat(goCode.FindAllStringSubmatch(text, -1), inlineCode.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1)) {
			for _, chain := range nameChain.FindAllString(m[1], -1) {
				p.add(chain, pageOf[filepath.ToSlash(page)])
			}
		}
	}
	return p
}

// add notes a chain of names such as pkg.Type.Member, and what it has after each dot.
func (p pageNames) add(chain string, packages []string) {
	parts := strings.Split(chain, ".")
	for from := range parts {
		for to := from + 1; to <= len(parts); to++ {
			p.written[strings.Join(parts[from:to], ".")] = true
		}
		for _, pkg := range packages {
			if p.bare[pkg] == nil {
				p.bare[pkg] = map[string]bool{}
			}
			p.bare[pkg][parts[from]] = true
		}
	}
}

// has reports whether a page has the name as pkg.Name, pkg.Type.Member, Type.Member, or alone on a page of its package.
func (p pageNames) has(n exportedName) bool {
	slash := strings.LastIndexByte(n.name, '/') + 1
	pkg, name, _ := strings.Cut(n.name[slash:], ".")
	return p.written[n.name[slash:]] || n.owner != nil && p.written[name] || p.bare[n.name[:slash]+pkg][n.obj.Name()]
}
