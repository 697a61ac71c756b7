#!/usr/bin/env python3
"""registry.py PORT: answers as an image registry that has nothing (404) and shows nothing below /private (401)."""
import http.server
import sys


class Registry(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/v2/":
            return self.answer(200, b"{}")
        if "/private/" in self.path:
            return self.answer(401, b'{"errors":[{"code":"UNAUTHORIZED"}]}')
        self.answer(404, b'{"errors":[{"code":"MANIFEST_UNKNOWN"}]}')

    do_HEAD = do_GET

    def answer(self, code, body):
        self.send_response(code)
        if code == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="registry"')
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Registry).serve_forever()
