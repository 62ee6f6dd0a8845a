// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"
	"maps"

	"github.com/drover-agents/drover/tool"
)

// SetText replaces the text of a section.
func (f *OverrideFile) SetText(ctx context.Context, section, text string) error {
	return f.setSection(ctx, section, SectionOverride{Text: &text})
}

// SetSummary replaces the summary of a section, or gives it one.
func (f *OverrideFile) SetSummary(ctx context.Context, section, summary string) error {
	return f.setSection(ctx, section, SectionOverride{Summary: &summary})
}

// SetVisibility sets the visibility of a section. For [Summary] it must have a summary, of its own or
// in the file.
func (f *OverrideFile) SetVisibility(ctx context.Context, section string, v Visibility) error {
	return f.setSection(ctx, section, SectionOverride{Visibility: &v})
}

// SetExample replaces an example of a section, by its place in the template. Nil removes it.
func (f *OverrideFile) SetExample(ctx context.Context, section string, index int, by *TaskExample) error {
	return f.setSection(ctx, section, SectionOverride{Examples: []ExampleOverride[TaskExample]{{Index: index, New: by}}})
}

// AppendExample adds an example to a section, behind those that the file added before.
func (f *OverrideFile) AppendExample(ctx context.Context, section string, e TaskExample) error {
	return f.edit(ctx, func(all entries) error {
		return appendTo(f.t, all, entryKey{Section: section, Target: targetAppend}, e)
	})
}

// SetDescription replaces the description of a tool.
func (f *OverrideFile) SetDescription(ctx context.Context, tool, description string) error {
	return f.setTool(ctx, tool, ToolOverride{Description: &description})
}

// SetParam replaces the description of a parameter of a tool; see [ToolOverride] for its name.
func (f *OverrideFile) SetParam(ctx context.Context, tool, param, description string) error {
	return f.setTool(ctx, tool, ToolOverride{Params: map[string]string{param: description}})
}

// SetToolExample replaces an example of a tool, by its place in the template. Nil removes it.
func (f *OverrideFile) SetToolExample(ctx context.Context, name string, index int, by *tool.Example) error {
	return f.setTool(ctx, name, ToolOverride{Examples: []ExampleOverride[tool.Example]{{Index: index, New: by}}})
}

// AppendToolExample adds an example to a tool, behind those that the file added before.
func (f *OverrideFile) AppendToolExample(ctx context.Context, name string, e tool.Example) error {
	return f.edit(ctx, func(all entries) error {
		return appendTo(f.t, all, entryKey{Tool: name, Target: targetAppend}, e)
	})
}

func (f *OverrideFile) setSection(ctx context.Context, path string, s SectionOverride) error {
	return f.set(ctx, &Overrides{Sections: map[string]SectionOverride{path: s}})
}

func (f *OverrideFile) setTool(ctx context.Context, name string, t ToolOverride) error {
	return f.set(ctx, &Overrides{Tools: map[string]ToolOverride{name: t}})
}

func (f *OverrideFile) set(ctx context.Context, o *Overrides) error {
	added, err := f.t.entriesOf(o)
	if err != nil {
		return err
	}
	return f.edit(ctx, func(all entries) error {
		maps.Copy(all, added)
		return nil
	})
}

// appendTo adds an example to the list of those that are added.
func appendTo[E any](t *template, all entries, k entryKey, e E) error {
	now, err := t.hashFor(k)
	if err != nil {
		return err
	}
	k.Hash = now
	var list []E
	if old, ok := all[k]; ok {
		if err := strictUnmarshal(old, &list); err != nil {
			return err
		}
	}
	if all[k], err = encodeValue(append(list, e)); err != nil {
		return t.refuse(k, err.Error(), "")
	}
	return nil
}
