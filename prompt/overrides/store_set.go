// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"context"
	"maps"

	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/tool"
)

// SetText replaces the text of a section.
func (f *File) SetText(ctx context.Context, section, text string) error {
	return f.setSection(ctx, section, prompt.SectionOverride{Text: &text})
}

// SetSummary replaces the summary of a section, or gives it one.
func (f *File) SetSummary(ctx context.Context, section, summary string) error {
	return f.setSection(ctx, section, prompt.SectionOverride{Summary: &summary})
}

// SetVisibility sets the visibility of a section. For [prompt.Summary] it must have a summary, of its own or in the file.
func (f *File) SetVisibility(ctx context.Context, section string, v prompt.Visibility) error {
	return f.setSection(ctx, section, prompt.SectionOverride{Visibility: &v})
}

// SetExample replaces an example of a section, by its index in the template. Nil removes it.
func (f *File) SetExample(ctx context.Context, section string, index int, by *prompt.TaskExample) error {
	return f.setSection(ctx, section, prompt.SectionOverride{Examples: []prompt.ExampleOverride[prompt.TaskExample]{{Index: index, New: by}}})
}

// AppendExample adds an example to a section, behind those that the file added before.
func (f *File) AppendExample(ctx context.Context, section string, e prompt.TaskExample) error {
	return f.edit(ctx, func(all entries) error {
		return appendTo(f, all, entryKey{Section: section, Target: targetAppend}, e)
	})
}

// SetDescription replaces the description of a tool.
func (f *File) SetDescription(ctx context.Context, tool, description string) error {
	return f.setTool(ctx, tool, prompt.ToolOverride{Description: &description})
}

// SetParam replaces the description of a parameter of a tool; see [prompt.ToolOverride] for its name.
func (f *File) SetParam(ctx context.Context, tool, param, description string) error {
	return f.setTool(ctx, tool, prompt.ToolOverride{Params: map[string]string{param: description}})
}

// SetToolExample replaces an example of a tool, by its index in the template. Nil removes it.
func (f *File) SetToolExample(ctx context.Context, name string, index int, by *tool.Example) error {
	return f.setTool(ctx, name, prompt.ToolOverride{Examples: []prompt.ExampleOverride[tool.Example]{{Index: index, New: by}}})
}

// AppendToolExample adds an example to a tool, behind those that the file added before.
func (f *File) AppendToolExample(ctx context.Context, name string, e tool.Example) error {
	return f.edit(ctx, func(all entries) error {
		return appendTo(f, all, entryKey{Tool: name, Target: targetAppend}, e)
	})
}

func (f *File) setSection(ctx context.Context, path string, s prompt.SectionOverride) error {
	return f.set(ctx, &prompt.Overrides{Sections: map[string]prompt.SectionOverride{path: s}})
}

func (f *File) setTool(ctx context.Context, name string, t prompt.ToolOverride) error {
	return f.set(ctx, &prompt.Overrides{Tools: map[string]prompt.ToolOverride{name: t}})
}

func (f *File) set(ctx context.Context, o *prompt.Overrides) error {
	added, err := f.entriesOf(o)
	if err != nil {
		return err
	}
	return f.edit(ctx, func(all entries) error {
		maps.Copy(all, added)
		return nil
	})
}

// appendTo adds an example to the list of those that are added.
func appendTo[E any](f *File, all entries, k entryKey, e E) error {
	now, err := f.hashFor(k)
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
		return f.refuse(k, err.Error(), "")
	}
	return nil
}
