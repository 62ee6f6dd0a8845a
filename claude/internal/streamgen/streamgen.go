// SPDX-License-Identifier: Apache-2.0

package streamgen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// The shape of one round of the mixed stream: an initial message, then per step ten deltas and one
// assistant message, per two steps a permission request and a tool result, then the result.
const (
	steps         = 80
	deltasPerStep = 10
	writeSize     = 4 << 10
	resultSize    = 18 << 10
	// RoundLines is the number of lines of one round.
	RoundLines = 2 + steps*(deltasPerStep+1) + steps/2*2
)

// Text returns n lines, each an assistant message with a paragraph of text.
func Text(n int) [][]byte {
	g := newGenerator()
	lines := make([][]byte, n)
	for i := range lines {
		lines[i] = g.assistant(fmt.Sprintf(`{"type":"text","text":%s}`, quote(g.prose(200))))
	}
	return lines
}

// Mixed returns n lines of a session with partial messages: mostly deltas, some assistant messages
// with thinking, text and a Write call of 4 KB, some permission requests, some tool results of
// 18 KB. Every [RoundLines] lines the mixture begins again with other content.
func Mixed(n int) [][]byte {
	g := newGenerator()
	lines := make([][]byte, 0, n+RoundLines)
	for len(lines) < n {
		lines = g.round(lines)
	}
	return lines[:n]
}

// Large returns n lines of about size bytes each: user messages with one big tool result, which
// is twice on its line, as the CLI writes it.
func Large(n, size int) [][]byte {
	g := newGenerator()
	lines := make([][]byte, n)
	for i := range lines {
		lines[i] = g.toolResult(size / 2)
	}
	return lines
}

// Join returns the lines as a stream.
func Join(lines [][]byte) []byte {
	return append(bytes.Join(lines, []byte("\n")), '\n')
}

type generator struct {
	rand    *rand.Rand
	session string
	message int
	tool    int
}

func newGenerator() *generator {
	g := &generator{rand: rand.New(rand.NewPCG(1, 2))}
	g.session = g.uuid()
	return g
}

func (g *generator) round(lines [][]byte) [][]byte {
	lines = append(lines, g.init())
	for step := range steps {
		g.message++
		for i := range deltasPerStep {
			lines = append(lines, g.delta(i))
		}
		g.tool++
		lines = append(lines, g.assistant(fmt.Sprintf(
			`{"type":"thinking","thinking":%s,"signature":%q},{"type":"text","text":%s},{"type":"tool_use","id":"toolu_%024d","name":"Write","input":{"file_path":"/work/file.go","content":%s}}`,
			quote(g.prose(300)), strings.Repeat("c2ln", 40), quote(g.prose(150)), g.tool, quote(g.code(writeSize)))))
		if step%2 == 1 {
			lines = append(lines, g.permission(), g.toolResult(resultSize))
		}
	}
	return append(lines, g.result())
}

func (g *generator) init() []byte {
	return fmt.Appendf(nil, `{"type":"system","subtype":"init","cwd":"/work","session_id":%q,"tools":["Bash","Read","Write","Edit","Grep"],"mcp_servers":[],"model":"claude-opus-5-5","permissionMode":"default","slash_commands":["clear","compact","init"],"apiKeySource":"ANTHROPIC_API_KEY","claude_code_version":"2.1.325","output_style":"default","agents":["Explore","Plan"],"skills":[],"plugins":[],"uuid":%q}`,
		g.session, g.uuid())
}

func (g *generator) delta(index int) []byte {
	delta := `{"type":"text_delta","text":` + quote(g.prose(24)) + `}`
	if index%5 == 4 {
		delta = `{"type":"input_json_delta","partial_json":` + quote(g.code(24)) + `}`
	}
	return fmt.Appendf(nil, `{"type":"stream_event","event":{"type":"content_block_delta","index":%d,"delta":%s},"session_id":%q,"parent_tool_use_id":null,"uuid":%q,"api_message_id":"msg_%024d"}`,
		index%3, delta, g.session, g.uuid(), g.message)
}

func (g *generator) assistant(content string) []byte {
	return fmt.Appendf(nil, `{"type":"assistant","message":{"id":"msg_%024d","type":"message","role":"assistant","model":"claude-opus-5-5","content":[%s],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"cache_creation_input_tokens":3211,"cache_read_input_tokens":14056,"output_tokens":1,"service_tier":"standard"},"context_management":null},"parent_tool_use_id":null,"session_id":%q,"uuid":%q,"timestamp":"2026-01-02T03:04:05.678Z","request_id":"req_%024d"}`,
		g.message, content, g.rand.IntN(1000), g.session, g.uuid(), g.message)
}

func (g *generator) permission() []byte {
	return fmt.Appendf(nil, `{"type":"control_request","request_id":%q,"request":{"subtype":"can_use_tool","tool_name":"Bash","display_name":"Bash","input":{"command":%s,"description":"run it"},"description":"run it","permission_suggestions":[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"go test *"}],"behavior":"allow","destination":"localSettings"}],"decision_reason_type":"other","tool_use_id":"toolu_%024d"}}`,
		g.uuid(), quote(g.prose(80)), g.tool)
}

func (g *generator) toolResult(size int) []byte {
	output := quote(g.code(size))
	return fmt.Appendf(nil, `{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_%024d","type":"tool_result","content":%s,"is_error":false}]},"parent_tool_use_id":null,"session_id":%q,"uuid":%q,"timestamp":"2026-01-02T03:04:05.678Z","tool_use_result":{"stdout":%s,"stderr":"","interrupted":false,"isImage":false}}`,
		g.tool, output, g.session, g.uuid(), shorten(output, size))
}

// shorten leaves out the second copy of outputs that the mixed stream counts once.
func shorten(output string, size int) string {
	if size == resultSize {
		return `""`
	}
	return output
}

func (g *generator) result() []byte {
	return fmt.Appendf(nil, `{"duration_api_ms":95,"stop_reason":"end_turn","session_id":%q,"total_cost_usd":0.42,"usage":{"input_tokens":24,"cache_creation_input_tokens":6,"cache_read_input_tokens":8,"output_tokens":18},"modelUsage":{"claude-opus-5-5":{"inputTokens":24,"outputTokens":18,"cacheReadInputTokens":8,"cacheCreationInputTokens":6,"webSearchRequests":0,"costUSD":0.42,"contextWindow":1000000,"maxOutputTokens":128000}},"permission_denials":[],"terminal_reason":"completed","is_error":false,"num_turns":2,"subtype":"success","result":%s,"type":"result","duration_ms":351,"uuid":%q}`,
		g.session, quote(g.prose(100)), g.uuid())
}

func (g *generator) uuid() string {
	a, b := g.rand.Uint64(), g.rand.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", uint32(a), uint16(a>>32), a>>52, b>>52, b&(1<<48-1))
}

var words = strings.Fields(`the a file reads line test package and value returns error function when with
	from buffer state of to is not been café naïve “quoted” → done 完了`)

// prose returns about size bytes of words.
func (g *generator) prose(size int) string {
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(words[g.rand.IntN(len(words))])
		b.WriteByte(' ')
	}
	return b.String()
}

// code returns about size bytes in lines of code, with tabs, quotes and line ends: an escape every
// eleven bytes, as in Go's own library.
func (g *generator) code(size int) string {
	var b strings.Builder
	for b.Len() < size {
		fmt.Fprintf(&b, "\tif err := run(ctx, %q, %d); err != nil {\n\t\treturn err // the caller knows the place and adds it\n\t}\n", words[g.rand.IntN(20)], g.rand.IntN(1e6))
	}
	return b.String()
}

// quote writes a JSON string as JavaScript does.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always has a JSON form
	return strings.TrimSuffix(b.String(), "\n")
}
