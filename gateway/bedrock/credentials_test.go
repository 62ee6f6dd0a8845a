// SPDX-License-Identifier: Apache-2.0

package bedrock_test

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gateway/bedrock"
)

// newServer is a server on loopback that replaces a part of AWS.
func newServer(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// fakeSTS gives the planted key to who brings the planted token, or signs as the planted source.
func fakeSTS(t testing.TB) string {
	return newServer(t, func(w http.ResponseWriter, r *http.Request) {
		action := r.FormValue("Action")
		switch {
		case action == "AssumeRoleWithWebIdentity" && r.FormValue("WebIdentityToken") == "planted-identity" && r.FormValue("RoleArn") == "arn:aws:iam::1:role/r":
		case action == "AssumeRole" && strings.Contains(r.Header.Get("Authorization"), "Credential=AKIASOURCE/") && r.FormValue("RoleArn") == "arn:aws:iam::1:role/r":
		default:
			http.Error(w, "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>", http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, `<%[1]sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult><Credentials>
			<AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>from-sts</SessionToken>
			<Expiration>%s</Expiration></Credentials></%[1]sResult></%[1]sResponse>`, action, plantedID, plantedSecret, inAnHour())
	})
}

func inAnHour() string { return time.Now().Add(time.Hour).UTC().Format(time.RFC3339) }

// fakeSSO gives the planted key to who has logged in.
func fakeSSO(t testing.TB) string {
	return newServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/federation/credentials" || r.Header.Get("X-Amz-Sso_bearer_token") != "planted-login" || r.FormValue("role_name") != "dev" {
			http.Error(w, `{"message":"no"}`, http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"roleCredentials":{"accessKeyId":%q,"secretAccessKey":%q,"sessionToken":"from-sso","expiration":%d}}`,
			plantedID, plantedSecret, time.Now().Add(time.Hour).UnixMilli())
	})
}

// fakeInstance is the metadata service of an instance whose credentials live for the given time.
func fakeInstance(t testing.TB, life time.Duration, asked *atomic.Int32) string {
	return newServer(t, func(w http.ResponseWriter, r *http.Request) {
		const roles = "/latest/meta-data/iam/security-credentials"
		switch {
		case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
			fmt.Fprint(w, "metadata-token")
		case r.Header.Get("X-Aws-Ec2-Metadata-Token") != "metadata-token":
			w.WriteHeader(http.StatusUnauthorized)
		case strings.TrimSuffix(r.URL.Path, "/") == roles:
			fmt.Fprint(w, "the-role")
		case r.URL.Path == roles+"/the-role":
			n := asked.Add(1)
			fmt.Fprintf(w, `{"Code":"Success","AccessKeyId":%q,"SecretAccessKey":%q,"Token":"from-instance-%d","Expiration":%q}`,
				plantedID, plantedSecret, n, time.Now().Add(life).UTC().Format(time.RFC3339))
		default:
			http.NotFound(w, r)
		}
	})
}

// fakeContainer is the endpoint of a container.
func fakeContainer(t testing.TB) string {
	return newServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "planted-container" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"AccessKeyId":%q,"SecretAccessKey":%q,"Token":"from-container","Expiration":%q}`, plantedID, plantedSecret, inAnHour())
	})
}

const plantedKeys = "aws_access_key_id = " + plantedID + "\naws_secret_access_key = " + plantedSecret + "\n"

func login(expires time.Time) string {
	return fmt.Sprintf(`{"accessToken":"planted-login","expiresAt":%q}`, expires.UTC().Format(time.RFC3339))
}

func loginFile(key string) string {
	sum := sha1.Sum([]byte(key))
	return "sso/cache/" + hex.EncodeToString(sum[:]) + ".json"
}

func TestCredentials_EachSource(t *testing.T) {
	decoys(t)
	sts, sso, container := fakeSTS(t), fakeSSO(t), fakeContainer(t)
	instance := fakeInstance(t, time.Hour, new(atomic.Int32))
	identity := filepath.Join(t.TempDir(), "identity")
	writeFile(t, identity, "planted-identity")
	for _, tc := range []struct {
		name      string
		env       environment
		files     map[string]string
		profile   string
		wantToken string // the session token, or "bearer"
	}{
		{name: "environment", env: environment{"AWS_ACCESS_KEY_ID": plantedID, "AWS_SECRET_ACCESS_KEY": plantedSecret}},
		{name: "environment with a session", env: environment{"AWS_ACCESS_KEY_ID": plantedID, "AWS_SECRET_ACCESS_KEY": plantedSecret, "AWS_SESSION_TOKEN": "of-the-session"}, wantToken: "of-the-session"},
		{name: "environment before files", env: environment{"AWS_ACCESS_KEY_ID": plantedID, "AWS_SECRET_ACCESS_KEY": plantedSecret}, files: map[string]string{"credentials": "[default]\naws_access_key_id = AKIAX\naws_secret_access_key = x\n"}},
		{name: "default profile", files: map[string]string{"credentials": "[default]\n" + plantedKeys}},
		{name: "default profile in the other file", files: map[string]string{"config": "[default]\n" + plantedKeys}},
		{name: "AWS_PROFILE", env: environment{"AWS_PROFILE": "work"}, files: map[string]string{"credentials": "[default]\naws_access_key_id = AKIAX\naws_secret_access_key = x\n[work]\n" + plantedKeys}},
		{name: "named profile before the environment", profile: "work", env: environment{"AWS_ACCESS_KEY_ID": "AKIAX", "AWS_SECRET_ACCESS_KEY": "x"}, files: map[string]string{"config": "[profile work]\n" + plantedKeys}},
		{name: "role of a profile", env: environment{"AWS_PROFILE": "work"}, files: map[string]string{
			"config":      "[profile work]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = source\nservices = local\n[services local]\nsts =\n  endpoint_url = " + sts + "\n",
			"credentials": "[source]\naws_access_key_id = AKIASOURCE\naws_secret_access_key = s\n",
		}, wantToken: "from-sts"},
		{name: "web identity", env: environment{"AWS_ROLE_ARN": "arn:aws:iam::1:role/r", "AWS_WEB_IDENTITY_TOKEN_FILE": identity, "AWS_ENDPOINT_URL_STS": sts}, wantToken: "from-sts"},
		{name: "SSO session", env: environment{"AWS_PROFILE": "dev"}, files: map[string]string{
			"config":             "[profile dev]\nsso_session = corp\nsso_account_id = 1\nsso_role_name = dev\nservices = local\n[sso-session corp]\nsso_region = us-east-1\nsso_start_url = https://corp.example/start\n[services local]\nsso =\n  endpoint_url = " + sso + "\n",
			loginFile("corp"):    login(time.Now().Add(time.Hour)),
			loginFile("another"): login(time.Now().Add(-time.Hour)),
		}, wantToken: "from-sso"},
		{name: "SSO of older profiles", env: environment{"AWS_PROFILE": "dev"}, files: map[string]string{
			"config":                                "[profile dev]\nsso_region = us-east-1\nsso_start_url = https://corp.example/start\nsso_account_id = 1\nsso_role_name = dev\nservices = local\n[services local]\nsso =\n  endpoint_url = " + sso + "\n",
			loginFile("https://corp.example/start"): login(time.Now().Add(time.Hour)),
		}, wantToken: "from-sso"},
		{name: "container", env: environment{"AWS_CONTAINER_CREDENTIALS_FULL_URI": container, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "planted-container"}, wantToken: "from-container"},
		{name: "instance profile", env: environment{"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": instance}, wantToken: "from-instance-"},
		{name: "instance profile beside a profile without keys", env: environment{"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": instance}, files: map[string]string{"config": "[default]\nregion = " + region + "\n"}, wantToken: "from-instance-"},
		{name: "bearer before all", env: environment{"AWS_BEARER_TOKEN_BEDROCK": "planted-bearer", "AWS_ACCESS_KEY_ID": "AKIAX", "AWS_SECRET_ACCESS_KEY": "x"}, wantToken: "bearer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fake := newFakeBedrock(t, answerOK)
			dir := t.TempDir()
			for name, content := range tc.files {
				writeFile(t, filepath.Join(dir, name), content)
			}
			env := environment{"AWS_REGION": region, "AWS_EC2_METADATA_DISABLED": "true"}
			for name, value := range tc.env {
				env[name] = value
			}
			u := open(t, bedrock.Options{Profile: tc.profile, ConfigDir: dir, Lookup: env.lookup, BaseURL: fake.URL})
			if status, body := invoke(t, u); status != 200 {
				t.Fatalf("got %d %s", status, body)
			}
			seen := fake.requests()[0]
			got := seen.Header.Get("X-Amz-Security-Token")
			if strings.HasPrefix(seen.Header.Get("Authorization"), "Bearer ") {
				got = "bearer"
			}
			if !strings.HasPrefix(got, tc.wantToken) || tc.wantToken == "" && got != "" {
				t.Errorf("got session token %q, want %q", got, tc.wantToken)
			}
		})
	}
}

func TestCredentials_SourcesOfFilesAndRegion(t *testing.T) {
	decoys(t)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, ".aws", "credentials"), "[default]\n"+plantedKeys)
	writeFile(t, filepath.Join(dir, ".aws", "config"), "[default]\nregion = from-home-1\n")
	writeFile(t, filepath.Join(dir, "named"), "[default]\nregion = from-named-1\n"+plantedKeys)
	for _, tc := range []struct {
		name string
		opts bedrock.Options
		env  environment
		want string
	}{
		{"home", bedrock.Options{}, environment{"HOME": dir}, "from-home-1"},
		{"home of Windows", bedrock.Options{}, environment{"USERPROFILE": dir}, "from-home-1"},
		{"named files", bedrock.Options{}, environment{"HOME": dir, "AWS_CONFIG_FILE": filepath.Join(dir, "named")}, "from-named-1"},
		{"folder before named files", bedrock.Options{ConfigDir: filepath.Join(dir, ".aws")}, environment{"AWS_CONFIG_FILE": filepath.Join(dir, "named")}, "from-home-1"},
		{"variable before files", bedrock.Options{}, environment{"HOME": dir, "AWS_DEFAULT_REGION": "from-default-1"}, "from-default-1"},
		{"the newer variable first", bedrock.Options{}, environment{"HOME": dir, "AWS_DEFAULT_REGION": "from-default-1", "AWS_REGION": "from-region-1"}, "from-region-1"},
		{"option before all", bedrock.Options{Region: "from-option-1"}, environment{"HOME": dir, "AWS_REGION": "from-region-1"}, "from-option-1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.env["AWS_EC2_METADATA_DISABLED"] = "true"
			tc.opts.Lookup = tc.env.lookup
			if got := open(t, tc.opts).Name(); got != "bedrock "+tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// Without Lookup the environment is that of the process.
func TestCredentials_ProcessEnvironmentIsTheDefault(t *testing.T) {
	decoys(t)
	for name, value := range planted() {
		t.Setenv(name, value)
	}
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", "")
	t.Setenv("AWS_SESSION_TOKEN", "")
	fake := newFakeBedrock(t, answerOK)
	if status, body := invoke(t, open(t, bedrock.Options{BaseURL: fake.URL})); status != 200 {
		t.Errorf("got %d %s", status, body)
	}
}

func TestCredentials_MissingFailAtOnce(t *testing.T) {
	decoys(t)
	notFound := newServer(t, http.NotFound)
	expired := map[string]string{
		"config":          "[profile dev]\nsso_session = corp\nsso_account_id = 1\nsso_role_name = dev\n[sso-session corp]\nsso_region = us-east-1\nsso_start_url = https://corp.example/start\n",
		loginFile("corp"): login(time.Now().Add(-time.Hour)),
	}
	for _, tc := range []struct {
		name  string
		opts  bedrock.Options
		env   environment
		files map[string]string
		none  bool // is ErrNoCredentials
		want  []string
	}{
		{name: "nothing", none: true, want: []string{"AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK", "aws sso login"}},
		{name: "no instance", env: environment{"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": notFound}, none: true, want: []string{"no instance profile", "AWS_PROFILE"}},
		{name: "half a key", env: environment{"AWS_ACCESS_KEY_ID": plantedID}, none: true, want: []string{"only one is set", "set both or none"}},
		{name: "unknown AWS_PROFILE", env: environment{"AWS_PROFILE": "absent"}, none: true, want: []string{`profile "absent" is not in`, "aws configure --profile absent"}},
		{name: "unknown profile", opts: bedrock.Options{Profile: "absent"}, none: true, want: []string{`profile "absent" is not in`}},
		{name: "profile without keys", opts: bedrock.Options{Profile: "p"}, files: map[string]string{"config": "[profile p]\nregion = x\n"}, none: true, want: []string{`profile "p" has none`}},
		{name: "identity without a role", env: environment{"AWS_WEB_IDENTITY_TOKEN_FILE": "/x"}, none: true, want: []string{"AWS_ROLE_ARN is not"}},
		{name: "identity that is not there", env: environment{"AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere/token", "AWS_ROLE_ARN": "r"}, none: true, want: []string{"/nowhere/token"}},
		{name: "expired login", env: environment{"AWS_PROFILE": "dev"}, files: expired, want: []string{"SSO login is missing or has expired", "aws sso login --profile dev"}},
		{name: "no login", env: environment{"AWS_PROFILE": "dev"}, files: map[string]string{"config": expired["config"]}, want: []string{"aws sso login --profile dev"}},
		{name: "container elsewhere", env: environment{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://192.0.2.1/x"}, none: true, want: []string{"neither https nor of this machine"}},
		{name: "no region", env: environment{"AWS_REGION": ""}, want: []string{"no AWS region", "set AWS_REGION"}},
		{name: "no region but a host", env: environment{"AWS_REGION": "x.evil.example/"}, want: []string{"is no AWS region"}},
		{name: "no certificates", env: environment{"AWS_CA_BUNDLE": "/nowhere/bundle"}, want: []string{"AWS_CA_BUNDLE", "/nowhere/bundle"}},
		{name: "bad address", opts: bedrock.Options{BaseURL: "nonsense"}, want: []string{"BaseURL"}},
		{name: "bad file", files: map[string]string{"config/x": ""}, want: []string{`profile "default"`, "correct the file"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.opts.ConfigDir = t.TempDir()
			for name, content := range tc.files {
				writeFile(t, filepath.Join(tc.opts.ConfigDir, name), content)
			}
			env := environment{"AWS_REGION": region, "AWS_EC2_METADATA_DISABLED": "true"}
			for name, value := range tc.env {
				env[name] = value
			}
			tc.opts.Lookup = env.lookup
			_, err := bedrock.New(t.Context(), tc.opts)
			if err == nil || errors.Is(err, bedrock.ErrNoCredentials) != tc.none {
				t.Fatalf("got %v, want ErrNoCredentials: %v", err, tc.none)
			}
			for _, part := range append(tc.want, "\n  next: ") {
				if !strings.Contains(advice.Text(err), part) {
					t.Errorf("%q is missing in: %v", part, err)
				}
			}
		})
	}
}

// An environment without a home has no files, whatever the home of this process holds.
func TestCredentials_NoHomeMeansNoFiles(t *testing.T) {
	decoys(t)
	env := environment{"AWS_REGION": region, "AWS_EC2_METADATA_DISABLED": "true"}
	if _, err := bedrock.New(t.Context(), bedrock.Options{Lookup: env.lookup}); !errors.Is(err, bedrock.ErrNoCredentials) {
		t.Errorf("got %v, want ErrNoCredentials", err)
	}
}

// Credentials that are at their end are not used once more.
func TestCredentials_AreRenewed(t *testing.T) {
	decoys(t)
	var asked atomic.Int32
	env := environment{"AWS_REGION": region, "AWS_EC2_METADATA_SERVICE_ENDPOINT": fakeInstance(t, -time.Second, &asked)}
	fake := newFakeBedrock(t, answerOK)
	u := open(t, bedrock.Options{Lookup: env.lookup, ConfigDir: t.TempDir(), BaseURL: fake.URL})
	tokens := map[string]bool{}
	for range 3 {
		if status, body := invoke(t, u); status != 200 {
			t.Fatalf("got %d %s", status, body)
		}
		seen := fake.requests()
		tokens[seen[len(seen)-1].Header.Get("X-Amz-Security-Token")] = true
	}
	if len(tokens) != 3 {
		t.Errorf("got tokens %v, want a new one for each request", tokens)
	}
}

// Keys in a file have no end that could be read; Bedrock reports when they are too old, and the program that
// keeps them fresh writes new ones into the file.
func TestCredentials_ExpiredKeysAreReadAgain(t *testing.T) {
	decoys(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "credentials")
	old := "[default]\naws_access_key_id = AKIAOLD\naws_secret_access_key = old\n"
	fake := newFakeBedrock(t, nil)
	fake.secrets["AKIAOLD"] = "old"
	fake.answer = func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Authorization"), "AKIAOLD") {
			w.Header().Set("X-Amzn-Errortype", "ExpiredTokenException:http://internal.amazon.com/")
			http.Error(w, `{"message":"The security token included in the request is expired"}`, http.StatusForbidden)
			return
		}
		answerOK(w, r)
	}
	writeFile(t, file, old)
	env := environment{"AWS_REGION": region, "AWS_EC2_METADATA_DISABLED": "true"}
	u := open(t, bedrock.Options{Lookup: env.lookup, ConfigDir: dir, BaseURL: fake.URL})
	if status, body := invoke(t, u); status != http.StatusForbidden || !strings.Contains(body, "expired") || len(fake.requests()) != 2 {
		t.Errorf("with the same keys: got %d %s after %d requests, want the answer of Bedrock to a second try", status, body, len(fake.requests()))
	}
	writeFile(t, file, "[default]\n"+plantedKeys)
	if status, body := invoke(t, u); status != 200 {
		t.Errorf("with new keys: got %d %s", status, body)
	}
}
