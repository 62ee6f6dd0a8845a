// SPDX-License-Identifier: Apache-2.0

package corpus

import "unicode/utf16"

// A Block is a run of lines that is written over and over.
type Block struct {
	Bytes []byte
	ends  []int // where each line ends in Bytes
	text  []Size
}

// Size is how much text a consumer sees, in the two units that languages count in.
type Size struct {
	UTF8, UTF16 int
}

func (s *Size) add(o Size) { s.UTF8 += o.UTF8; s.UTF16 += o.UTF16 }

func sizeOf(texts ...string) Size {
	var s Size
	for _, t := range texts {
		s.add(Size{len(t), len(utf16.Encode([]rune(t)))})
	}
	return s
}

// add appends one line; texts are the parts of it that a consumer looks at.
func (b *Block) add(line object, texts ...string) {
	b.Bytes = append(line.appendTo(b.Bytes), '\n')
	b.ends = append(b.ends, len(b.Bytes))
	b.text = append(b.text, sizeOf(texts...))
}

// Lines is the number of lines in the block.
func (b *Block) Lines() int { return len(b.ends) }

// Prefix is the first n lines of the block.
func (b *Block) Prefix(n int) []byte {
	if n <= 0 {
		return nil
	}
	return b.Bytes[:b.ends[min(n, len(b.ends))-1]]
}

// Volume is the number of bytes, and the text, of n lines of the repeated block.
func (b *Block) Volume(n int) (bytes int, text Size) {
	for i := range b.text {
		times := n / len(b.text)
		if i < n%len(b.text) {
			times++
		}
		text.add(Size{b.text[i].UTF8 * times, b.text[i].UTF16 * times})
	}
	bytes = n/len(b.ends)*len(b.Bytes) + len(b.Prefix(n%len(b.ends)))
	return bytes, text
}
