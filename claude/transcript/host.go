// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// unportable are the settings that refer to files outside of the copy.
var unportable = []string{"enabledPlugins", "extraKnownMarketplaces", "additionalMarketplaces"}

// copyHost copies login, state and settings from the config directory that the caller named.
func copyHost(root *os.Root, opts ResumeOptions) error {
	if opts.HostConfigDir == "" && opts.HostStateFile == "" {
		return nil
	}
	copies := []struct {
		from, to string
		drop     []string
		deep     bool // drop at every depth
	}{
		{opts.hostFile(".credentials.json"), ".credentials.json", []string{"refreshToken"}, true},
		{cmp.Or(opts.HostStateFile, opts.hostFile(".claude.json")), ".claude.json", nil, false},
		{opts.hostFile("settings.json"), "settings.json", unportable, false},
		{opts.hostFile("cowork_settings.json"), "cowork_settings.json", unportable, false},
	}
	for _, c := range copies {
		if err := copyJSON(root, c.from, c.to, c.drop, c.deep); err != nil {
			return err
		}
	}
	return nil
}

func (o ResumeOptions) hostFile(name string) string {
	if o.HostConfigDir == "" {
		return ""
	}
	return filepath.Join(o.HostConfigDir, name)
}

// copyJSON copies a JSON object without some members. A missing file is not an error; a malformed one
// is, because its members cannot be found. The error does not quote its content.
func copyJSON(root *os.Root, from, to string, drop []string, deep bool) error {
	if from == "" {
		return nil
	}
	data, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	o, err := parseObject(data)
	if err != nil || !json.Valid(data) {
		return fmt.Errorf("%s is not a JSON object; repair it or name another HostConfigDir", from)
	}
	o = o.without(drop...)
	if deep {
		o = o.deepWithout(drop)
	}
	return writePrivate(root, to, o.bytes())
}

// deepWithout drops members from the objects inside o too.
func (o object) deepWithout(keys []string) object {
	for i := range o {
		o[i].value = dropDeep(o[i].value, keys)
	}
	return o
}

func dropDeep(value json.RawMessage, keys []string) json.RawMessage {
	if o, err := parseObject(value); err == nil {
		return o.without(keys...).deepWithout(keys).bytes()
	}
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil || list == nil {
		return value
	}
	for i := range list {
		list[i] = dropDeep(list[i], keys)
	}
	return encode(list)
}
