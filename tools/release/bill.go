// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"
)

// The parts of a bill of materials in CycloneDX 1.5 that this one has.
type (
	billOfMaterials struct {
		Format       string       `json:"bomFormat"`
		SpecVersion  string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		PackageURL string     `json:"purl"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Licences   []licence  `json:"licenses,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	licence struct {
		Licence struct {
			ID string `json:"id"`
		} `json:"license"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn,omitempty"`
	}
)

// modulePath is that of Drover.
const modulePath = "github.com/drover-agents/drover"

// bill lists what a binary is made of. Its serial number follows from the binary, so that the same one has the same bill.
func (r *release) bill(p platform, modules []module, binary []byte) ([]byte, error) {
	sum := sha256.Sum256(binary)
	id := [16]byte(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of version 8
	own := componentOf(module{path: modulePath, version: "v" + r.version, licences: []string{"Apache-2.0"}})
	own.Type, own.Hashes = "application", []hash{{"SHA-256", fmt.Sprintf("%x", sum)}}
	own.Properties = []property{{"go:os", p.os}, {"go:arch", p.arch}, {"vcs:commit", r.commit}}
	b := billOfMaterials{
		Format: "CycloneDX", SpecVersion: "1.5", Version: 1,
		Serial:   fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:]),
		Metadata: metadata{r.date.Format(time.RFC3339), own},
	}
	all := dependency{Ref: own.Ref}
	for _, m := range modules {
		c := componentOf(m)
		b.Components = append(b.Components, c)
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{all}
	text, err := json.MarshalIndent(b, "", "  ")
	return append(text, '\n'), err
}

func componentOf(m module) component {
	url := fmt.Sprintf("pkg:golang/%s@%s", m.path, m.version)
	c := component{Type: "library", Ref: url, Name: m.path, Version: m.version, PackageURL: url}
	for _, id := range m.licences {
		var l licence
		l.Licence.ID = id
		c.Licences = append(c.Licences, l)
	}
	if m.sum != "" {
		c.Properties = []property{{"go:sum", m.sum}}
	}
	return c
}
