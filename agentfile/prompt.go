// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/schema"
)

// Prompt returns the prompt of the agent with values for its arguments, and with more sections at its end. It
// reads the skills and the schema that the file names. An error about the values wraps [ErrArgs]; others
// join values of type [*Problem].
func (f *File) Prompt(args map[string]string, more ...*prompt.Section) (*prompt.Prompt[prompt.JSON], error) {
	values, err := f.values(args)
	if err != nil {
		return nil, err
	}
	b := f.builder(values)
	b.skill = b.loadSkill
	tmpl := b.template(more...)
	if err := b.join(); err != nil {
		return nil, err
	}
	if !b.shown {
		return nil, advice.Wrap(fmt.Errorf("%s: %w: no section is there with these values", f.path, ErrArgs),
			"give others, or have a section without when")
	}
	return tmpl.Bind()
}

// A builder makes the template of a prompt, and collects problems.
type builder struct {
	problems
	f      *File
	values map[string]string
	// skill loads a skill. Nil leaves skills out.
	skill    func(pointer, path string) *prompt.Skill
	pointers map[string]string // of sections, by their paths
	loaded   map[string]*prompt.Skill
	shown    bool // a section is there
	placed   bool // the skills of the whole run have a section
}

func (f *File) builder(values map[string]string) *builder {
	return &builder{problems: problems{file: f.path, tree: f.tree}, f: f, values: values, pointers: map[string]string{}, loaded: map[string]*prompt.Skill{}}
}

// template returns nil after a problem.
func (b *builder) template(more ...*prompt.Section) *prompt.Template[prompt.JSON] {
	d := prompt.Definition{
		Namespace: b.f.Namespace, Key: b.f.Key, Name: b.f.Name, Output: b.output(),
		Params: prompt.Defaults(structOf(b.values)), Sections: append(b.sections("/sections", "", b.f.Sections), more...),
	}
	if len(b.f.Skills) > 0 && !b.placed {
		b.add("/skills", "no section is always shown in full, and skills for the whole run come with one", "name them in the sections that need them, or add a section")
	}
	tmpl, err := prompt.Define[prompt.JSON](d)
	b.defined(err)
	return tmpl
}

func (b *builder) sections(pointer, path string, list []Section) []*prompt.Section {
	var all []*prompt.Section
	for i, s := range list {
		here := at(pointer, i)
		own := path + s.Key
		b.pointers[strings.ToLower(own)] = here
		section := &prompt.Section{
			Key: s.Key, Title: s.Title, Text: s.Text, Summary: s.Summary, Visibility: s.Visibility,
			Skills: b.skills(here+"/skills", s.Skills),
		}
		enabled := b.enabled(s.When)
		if len(s.When) > 0 {
			section.Enabled = func(prompt.View) bool { return enabled }
		}
		b.shown = b.shown || enabled && path == ""
		if path == "" && len(s.When) == 0 && s.Visibility == prompt.Full && !b.placed {
			b.placed = true
			section.Skills = append(section.Skills, b.skills("/skills", b.f.Skills)...)
		}
		section.Children = b.sections(here+"/children", own+".", s.Children)
		all = append(all, section)
	}
	return all
}

// enabled reports whether all arguments have the values that a section needs.
func (b *builder) enabled(when map[string]json.RawMessage) bool {
	for name, value := range when {
		arg := b.f.Args[name]
		want, err := arg.read(plain(value))
		if err != nil || !arg.same(b.values[name], want) {
			return false
		}
	}
	return true
}

func (b *builder) skills(pointer string, paths []string) []*prompt.Skill {
	var all []*prompt.Skill
	for i, path := range paths {
		if b.skill == nil {
			break
		}
		if s := b.skill(at(pointer, i), path); s != nil {
			all = append(all, s)
		}
	}
	return all
}

const maxSkills = 100

func (b *builder) loadSkill(pointer, path string) *prompt.Skill {
	resolved, err := b.f.resolve(path)
	if err != nil {
		b.fail(pointer, err)
		return nil
	}
	if s, again := b.loaded[resolved]; again {
		return s
	}
	if len(b.loaded) == maxSkills {
		b.add(pointer, fmt.Sprintf("there are more than %d skills", maxSkills), "name fewer skills")
		return nil
	}
	s, err := prompt.LoadSkill(resolved)
	if err != nil {
		b.fail(pointer, err)
	}
	b.loaded[resolved] = s
	return s
}

// output is the schema of the answer, or nil for text.
func (b *builder) output() *schema.Schema {
	text, pointer := b.f.Output.Schema, "/output/schema"
	if b.f.Output.File != "" {
		if b.skill == nil { // nothing is read yet
			return nil
		}
		var err error
		pointer = "/output/file"
		if text, err = b.f.read(b.f.Output.File); err != nil {
			b.fail(pointer, err)
			return nil
		}
	}
	if text == nil {
		return nil
	}
	s, err := schema.Parse(text)
	if err == nil {
		_, _, err = schema.ForCLI(s)
	}
	if err != nil {
		b.misfit(pointer, err)
		return nil
	}
	return s
}

// misfit reports the problem of a schema, with its position if the schema is in the file.
func (b *builder) misfit(pointer string, err error) {
	reason := err.Error()
	if place, ok := errors.AsType[*schema.LocationError](err); ok && pointer == "/output/schema" {
		pointer, reason = pointer+strings.TrimPrefix(place.Location, "#"), place.Reason
	}
	b.note(pointer, "it is no JSON Schema for an answer: "+reason, "fix it; the smallest one is {type: object}").Err = err
}

// defined reports the problems of a definition, with their positions in the file.
func (b *builder) defined(err error) {
	if err == nil || len(b.all) > 0 { // an earlier problem may have caused it
		return
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, one := range all {
		e, ok := errors.AsType[*prompt.Error](one)
		if !ok {
			b.note("", one.Error(), "").Err = one
			continue
		}
		pointer, next := b.pointers[e.Section], e.Next
		switch {
		case e.Section != "" && e.Part != "":
			pointer += "/" + strings.ToLower(e.Part)
			next = cmp.Or(next, "write ${name} for an argument, and $$ for a dollar sign")
		case e.Part == "Key":
			pointer, next = "/key", "give the agent a key: the name of the file is not a valid key"
		}
		found := b.note(pointer, e.Reason+causeOf(e), next)
		if reason, unknown := strings.CutPrefix(e.Reason, "unknown placeholder "); unknown {
			name, _, _ := strings.Cut(reason, " ")
			found.Reason = fmt.Sprintf("there is no argument for the placeholder %s (%s)", name, b.f.known())
			found.Next = "declare it under args, or write $$ for a dollar sign"
		}
		found.Err = one
		if where := b.tree.positions[pointer]; where.textLine > 0 && e.Line > 0 {
			found.Line, found.Column = where.textLine+e.Line-1, where.textIndent+e.Column
		}
	}
}

func causeOf(e *prompt.Error) string {
	if e.Cause == nil {
		return ""
	}
	return ": " + e.Cause.Error()
}

// hides reports whether there are sections that the agent can open.
func hides(list []Section) bool {
	return slices.ContainsFunc(list, func(s Section) bool { return s.Visibility == prompt.Summary || hides(s.Children) })
}

func skilled(list []Section) bool {
	return slices.ContainsFunc(list, func(s Section) bool { return len(s.Skills) > 0 || skilled(s.Children) })
}

// hidesSkills reports whether skills come with a section that the agent has to open.
func hidesSkills(list []Section) bool {
	return slices.ContainsFunc(list, func(s Section) bool {
		return s.Visibility == prompt.Summary && skilled([]Section{s}) || hidesSkills(s.Children)
	})
}
