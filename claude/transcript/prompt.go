// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// promptChars is how much of a prompt a listing shows.
const promptChars = 200

var (
	commandName = lazyRegexp(`(?s)<command-name>(.*?)</command-name>`)
	bashInput   = lazyRegexp(`(?s)<bash-input>(.*?)</bash-input>`)
	// generated matches texts that the CLI or an editor wrote as user messages.
	generated = lazyRegexp(`(?s)^(<local-command-stdout>|<session-start-hook>|<tick>|<goal>|` +
		`\[Request interrupted by user[^\]]*\]|<ide_opened_file>.*</ide_opened_file>$|<ide_selection>.*</ide_selection>$)`)
)

// promptOf returns the text of a user message that a person wrote, and whether it is only a slash
// command, which is used if no other prompt follows. Message may be cut off.
func promptOf(message []byte) (text string, command bool) {
	for _, text := range userTexts(message) {
		text = strings.TrimSpace(strings.ReplaceAll(text, "\n", " "))
		if text == "" || generated().MatchString(text) {
			continue
		}
		if m := commandName().FindStringSubmatch(text); m != nil {
			return strings.TrimSpace(m[1]), true
		}
		if m := bashInput().FindStringSubmatch(text); m != nil {
			text = "! " + strings.TrimSpace(m[1])
		}
		return shorten(text), false
	}
	return "", false
}

// userTexts returns the texts of a user message, none if it carries a tool result.
func userTexts(message []byte) (texts []string) {
	eachField(message, func(key string, content []byte, whole bool) {
		switch {
		case key != "content" || len(content) == 0:
		case content[0] == '"':
			texts = []string{stringValue(content, whole)}
		case content[0] == '[':
			texts = blockTexts(content[1:])
		}
	})
	return texts
}

func blockTexts(list []byte) (texts []string) {
	for {
		list = bytes.TrimLeft(list, " \t\r\n,")
		n, whole := skipValue(list)
		if n == 0 {
			return texts
		}
		kind, text := "", ""
		eachField(list[:n], func(key string, value []byte, whole bool) {
			switch key {
			case "type":
				kind = unquote(value)
			case "text":
				text = stringValue(value, whole)
			}
		})
		if kind == "tool_result" {
			return nil
		}
		if kind == "text" {
			texts = append(texts, text)
		}
		if !whole {
			return texts
		}
		list = list[n:]
	}
}

func stringValue(value []byte, whole bool) string {
	if whole {
		return unquote(value)
	}
	return unquoteStart(value)
}

func shorten(text string) string {
	if utf8.RuneCountInString(text) <= promptChars {
		return text
	}
	return strings.TrimRight(string([]rune(text)[:promptChars]), " \t") + "…"
}
