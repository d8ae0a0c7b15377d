package sandboxd

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

var client = &http.Client{
	Timeout: time.Minute,
	// As that client has it: nobody leads it elsewhere.
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// One request for a file. Its path is one segment, with every slash in it encoded.
func ask(t *testing.T, method, path string, body io.Reader) (status int, content []byte) {
	t.Helper()
	segment := strings.ReplaceAll(url.QueryEscape(path), "+", "%20")
	if path == "." {
		segment = "%2E"
	}
	query := ""
	if method == "DELETE -r" {
		method, query = http.MethodDelete, "?recursive=true"
	}
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+os.Getenv("REST")+"/v1/files/"+segment+query, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Request-ID", "0123456789abcdef")
	if body != nil {
		request.Header.Set("Content-Type", "application/octet-stream")
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err = io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, content
}

func TestFiles(t *testing.T) {
	large := make([]byte, 8_000_000)
	rand.Read(large)
	for _, path := range []string{"files/a b/ü+%.bin", "/files/absolute"} {
		status, _ := ask(t, http.MethodPut, path, bytes.NewReader(large))
		expect(t, "write "+path, status, http.StatusNoContent)
		status, content := ask(t, http.MethodGet, path, nil)
		expect(t, "read "+path, status, http.StatusOK)
		expect(t, "content of "+path, bytes.Equal(content, large), true)
	}
	// A reader of unknown length is sent in chunks.
	status, _ := ask(t, http.MethodPut, "files/stream", io.LimitReader(strings.NewReader("streamed"), 100))
	expect(t, "stream", status, http.StatusNoContent)

	status, content := ask(t, http.MethodGet, "files", nil)
	expect(t, "list", status, http.StatusOK)
	var listing struct {
		Entries []struct {
			Name       string `json:"name"`
			Size       int64  `json:"size"`
			Type       string `json:"type"`
			Mode       string `json:"mode"`
			ModifiedAt string `json:"modified_at"`
		} `json:"entries"`
	}
	if err := json.Unmarshal(content, &listing); err != nil || len(listing.Entries) != 3 {
		t.Fatalf("%s: %v", content, err)
	}
	directory, stream := listing.Entries[0], listing.Entries[2]
	expect(t, "directory", directory.Name+" "+directory.Type, "a b directory")
	expect(t, "file", stream.Name+" "+stream.Type+" "+stream.Mode, "stream file 0644")
	expect(t, "size", stream.Size, 8)
	modified, err := time.Parse(time.RFC3339Nano, stream.ModifiedAt)
	if err != nil || time.Since(modified).Abs() > 10*time.Minute {
		t.Errorf("modified at %s: %v", stream.ModifiedAt, err)
	}

	for _, row := range []struct {
		method, path string
		status       int
		code         string
	}{
		{http.MethodHead, "files/stream", http.StatusOK, ""},
		{http.MethodHead, "files", http.StatusOK, ""},
		{http.MethodHead, ".", http.StatusOK, ""},
		{http.MethodGet, ".", http.StatusOK, ""},
		{http.MethodHead, "files/missing", http.StatusNotFound, ""},
		{http.MethodGet, "files/missing", http.StatusNotFound, "NOT_FOUND"},
		{http.MethodGet, "../elsewhere", http.StatusForbidden, "PERMISSION_DENIED"},
		{http.MethodPut, "files", http.StatusBadRequest, "INVALID_ARGUMENT"},
		{http.MethodDelete, "files/missing", http.StatusNotFound, "NOT_FOUND"},
		{http.MethodDelete, "files", http.StatusConflict, "CONFLICT"},
		{http.MethodDelete, "files/stream", http.StatusNoContent, ""},
		{"DELETE -r", "files", http.StatusNoContent, ""},
		{http.MethodHead, "files", http.StatusNotFound, ""},
	} {
		status, content := ask(t, row.method, row.path, nil)
		expect(t, row.method+" "+row.path, status, row.status)
		var failure struct{ Code, Message string }
		if row.code != "" && (json.Unmarshal(content, &failure) != nil || failure.Code != row.code || failure.Message == "") {
			t.Errorf("%s %s: %s, expected %s", row.method, row.path, content, row.code)
		}
	}
}

func TestHealth(t *testing.T) {
	response, err := client.Get("http://" + os.Getenv("REST") + "/v1/health")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var health struct {
		Status        string `json:"status"`
		UptimeSeconds *int   `json:"uptime_seconds"`
	}
	if json.NewDecoder(response.Body).Decode(&health) != nil || health.Status != "ok" || health.UptimeSeconds == nil {
		t.Errorf("%d %+v", response.StatusCode, health)
	}
}
