// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/isolation"
)

// envDemo says who answers in the demo: "script", or nothing for whom the environment has.
const envDemo = "DROVER_DEMO"

// A demoModel is who answers.
type demoModel struct {
	// says who it is, and how to have the other one.
	says string
	// upstream is the script. Nil is the model that auth pays for.
	upstream gateway.Upstream
	auth     isolation.Auth
	close    func() error
}

// chooseDemoModel takes the model that the environment has, or else the script.
func chooseDemoModel(scripted bool, p project) (*demoModel, error) {
	switch said := os.Getenv(envDemo); said {
	case "":
	case "script":
		scripted = true
	default:
		return nil, usageError("%s is %q\n  next: set it to script, or unset it", envDemo, said)
	}
	if scripted {
		return p.startScript("scripted, as asked: no key is used, and nothing is charged")
	}
	found, err := p.environmentPays()
	if bad, ok := errors.AsType[*isolation.AuthError](err); ok && found == nil {
		return p.startScript(scriptedSince(bad))
	}
	if err != nil {
		return nil, err
	}
	return &demoModel{says: demoPaidBy(found), auth: isolation.Auth{Only: found.Mode}, close: func() error { return nil }}, nil
}

// environmentPays finds what the variables of this process pay with.
func (p project) environmentPays() (*claudecell.Finding, error) {
	return claudecell.Authenticate(&isolation.Isolation{Host: p.host()})
}

// host is this machine, but for the settings and the login of its claude: the demo says who answers, and they
// could have somebody else do so.
func (p project) host() isolation.Host {
	none := filepath.Join(p.dir, "settings") // which is not there, and where the agent can put nothing
	environ := append(os.Environ(), "CLAUDE_CONFIG_DIR="+none)
	return isolation.Host{Environ: func() []string { return environ }}
}

// scriptedSince says why there is no model, and how to have one.
func scriptedSince(bad *isolation.AuthError) string {
	for _, name := range slices.Concat(credentialNames, cloudNames) {
		if os.Getenv(name) != "" {
			return "scripted, since " + bad.Reason
		}
	}
	return "scripted, no key needed; a real one answers if a key or Bedrock is set"
}

func demoPaidBy(found *claudecell.Finding) string {
	service := "Anthropic"
	if found.Bedrock != nil {
		service = "Bedrock in " + found.Bedrock.Region
	}
	return fmt.Sprintf("%s, by %s; %s=script or --scripted needs none", service, found.Name, envDemo)
}

// startScript has the script answer, on loopback.
func (p project) startScript(says string) (*demoModel, error) {
	text, err := demoFiles.ReadFile("demo/model.yaml")
	if err != nil {
		return nil, err
	}
	s, err := script.Read(bytes.NewReader(bytes.ReplaceAll(text, []byte("{{SHOP}}"), []byte(p.shop))))
	if err != nil {
		return nil, err
	}
	server, err := script.Start(s)
	if err != nil {
		return nil, err
	}
	upstream, err := scripted(server.URL())
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return &demoModel{says: says, upstream: upstream, close: server.Close}, nil
}
