// For each error code, instructions and an example that produces it. `explain` prints them; a test runs every example.

import type { ErrorCode } from '../errors.ts'

export interface ErrorExample {
  /** Files of the example in addition to its configuration: a text, or a certificate. */
  readonly files?: Readonly<Record<string, string>>
  /** Text of `agent.yaml`. */
  readonly config?: string
  /** The typed command. */
  readonly command: string
  /** A part of the output. */
  readonly says: string
}

export interface ErrorHelp {
  /** The meaning, in addition to the code's summary. */
  readonly means: string
  readonly fix: string
  /** If there is no example, `means` gives the reason. */
  readonly example?: ErrorExample
}

const run = 'penstock-agent --config agent.yaml'

/** A configuration with further options for its sink. */
const withSink = (options: string) => `sources:
  in: { type: stdin }
sinks:
  out:
    type: http
    inputs: [in]
    uri: http://127.0.0.1:9/
    encoding: { codec: json }
${options}`

const withSource = (source: string) => `data_dir: .
sources:
  in: ${source}
sinks:
  out: { type: blackhole, inputs: [in] }
`

export const errorHelp: Readonly<Record<ErrorCode, ErrorHelp>> = {
  PEN_CONFIG_INVALID: {
    means:
      'The agent does not start with such a configuration; a running agent keeps the current one. The exit code is 78. Only a few commands end with this code as an error: `run` and `validate` list the problems instead.',
    fix: 'Fix each listed problem. `penstock-agent validate PATH` lists all of them; `penstock lint -f PATH` does so for resources.',
    example: {
      files: { 'broken.yaml': 'sources: [' },
      command: 'penstock-agent generate --from broken.yaml',
      says: 'broken.yaml:1:10: not valid YAML',
    },
  },
  PEN_CONFIG_UNREADABLE: {
    means: "The path is wrong, or the agent's account does not have permission to read it.",
    fix: 'Check the path relative to the folder where the command starts, and the permissions of the file and of its parent folders.',
    example: {
      command: 'penstock-agent generate --from missing.yaml',
      says: '"missing.yaml" cannot be read: no such file or directory',
    },
  },
  PEN_DATA_DIR: {
    means: 'The agent stores file positions and disk buffers there, so a source or sink that needs them cannot start.',
    fix: "Create the directory and make it writable for the agent's account, or set another one in `data_dir`. In a container, mount a volume there.",
    example: {
      config: withSource('{ type: file, include: [/var/log/app.log] }').replace('data_dir: .', 'data_dir: missing'),
      command: run,
      says: 'data_dir "missing" does not exist',
    },
  },
  PEN_TLS_FILE: {
    means: "An option below `tls` names a file that does not exist, or that the agent's account cannot read.",
    fix: 'Check the path and its permissions. In a container, check that the Secret or volume is mounted.',
    example: {
      config: withSink('    tls: { ca_file: /missing/ca.pem }\n'),
      command: run,
      says: '`tls.ca_file`: the file /missing/ca.pem cannot be read (no such file or directory)',
    },
  },
  PEN_TLS_KEY_MISSING: {
    means: 'A client that presents a certificate must also have its private key.',
    fix: 'Set `tls.key_file` in addition to `tls.crt_file`, or use a PKCS#12 file, which contains both.',
    example: {
      files: { 'client.pem': 'CERTIFICATE' },
      config: withSink('    tls: { crt_file: ./client.pem }\n'),
      command: run,
      says: '`tls.crt_file`: the file ./client.pem requires a private key.',
    },
  },
  PEN_TLS_INVALID: {
    means:
      'The file is readable, but it is neither PEM nor DER nor PKCS#12, or the key belongs to another certificate, or the passphrase is wrong.',
    fix: 'Inspect the file with `openssl x509 -in FILE -text`, or `openssl pkey -in FILE` for a key. A PEM file has lines that begin with `-----BEGIN`.',
    example: {
      files: { 'ca.pem': 'no certificate' },
      config: withSink('    tls: { ca_file: ./ca.pem }\n'),
      command: run,
      says: '`tls.ca_file`: the file ./ca.pem is not a certificate in PEM or DER format',
    },
  },
  PEN_PROXY_INVALID: {
    means:
      'A proxy address comes from `proxy` in the configuration or in a component, or from the variables `HTTP_PROXY` and `HTTPS_PROXY`. For a configuration, the problem names the line.',
    fix: 'Write the address with its scheme, such as `http://proxy:3128`.',
    example: {
      config: `proxy: { http: "proxy:port" }\n${withSink('')}`,
      command: run,
      says: '`http` must be a URL with scheme http or https, such as `http://proxy:3128`',
    },
  },
  PEN_AUTH: {
    means:
      'The component cannot authenticate, because it has no credentials, invalid ones, or two sets. Events wait or are discarded, as after other failures of the sink.',
    fix: 'Set credentials in one place only: `auth`, the address, a file, or the environment. Check that a token has not expired.',
    example: {
      config: withSink('    auth: { strategy: basic, user: me, password: pw }\n').replace('http://', 'http://me:pw@'),
      command: run,
      says: 'Remove either the user information from the address or the option `auth`.',
    },
  },
  PEN_HEALTHCHECK: {
    means:
      'The agent checks each destination once at start. Without `--require-healthy` it reports the failure and continues.',
    fix: 'The message contains the connection error or the response status. Check address, network and credentials; set `healthcheck.uri` if the destination has another address for health checks, or `healthcheck.enabled: false`.',
    example: {
      config: withSink('    healthcheck: { uri: "http://127.0.0.1:9/" }\n'),
      command: `${run} --require-healthy`,
      says: 'Sinks unhealthy. out: http://127.0.0.1:9 cannot be reached',
    },
  },
  PEN_REQUEST_FAILED: {
    means:
      'The connection was refused or lost, a proxy refused it, or the response does not follow the protocol. Sinks retry such requests.',
    fix: 'Check that the address and port belong to the right service, and that no network policy or proxy blocks the connection. `penstock-agent top` shows which component fails.',
    example: {
      config: withSource('{ type: amqp, connection_string: "amqp://127.0.0.1:9/%2F", queue: q, consumer: penstock }'),
      command: `${run} --require-healthy`,
      says: 'The broker amqp://127.0.0.1:9/%2F cannot be used: connect ECONNREFUSED',
    },
  },
  PEN_KUBERNETES: {
    means:
      'Sources of pods and events need the API. They wait and retry while it is unavailable; they do not start without its address.',
    fix: 'In a pod, check the service account and its ClusterRole: `kubectl auth can-i list pods --as SERVICEACCOUNT`. Outside a cluster, set `kube_config_file`.',
    example: {
      config: withSource('{ type: orchestrator_logs, self_node_name: node-1 }'),
      command: `env -u KUBERNETES_SERVICE_HOST ${run}`,
      says: 'The address of the Kubernetes API is unknown',
    },
  },
  PEN_NODE_NAME: {
    means: 'The source reads the pods of one node, and needs the name of that node.',
    fix: 'Set the variable `AGENT_SELF_NODE_NAME` in the pod from `spec.nodeName` by the downward API, or set `self_node_name`.',
    example: {
      config: withSource('{ type: orchestrator_logs }'),
      command: `env -u AGENT_SELF_NODE_NAME ${run}`,
      says: 'self_node_name config value or AGENT_SELF_NODE_NAME env var is not set',
    },
  },
  PEN_EGRESS_DENIED: {
    means:
      "Namespaced Pipelines must not connect to the node, the API server, a cloud's metadata services, or addresses that the administrator denies. The agent checks the address of each connection, because a name may resolve to another address later. This only affects agents with an operator's bundle, so no command reproduces it.",
    fix: 'Use the address of a service. If the destination is legitimate, ask the administrator to allow it: `egress` of the TenantPolicy lists the denied addresses. `penstock explain T7` shows the rule.',
  },
  PEN_IO: {
    means:
      'The message has the path and the reason; where the reason is a code of the system, such as `EIO`, its documentation explains it.',
    fix: 'Check the path, its permissions and the free space.',
    example: {
      command: 'penstock-agent buffer inspect missing',
      says: 'The folder missing cannot be read: no such file or directory',
    },
  },
  PEN_CANNOT_CREATE: {
    means: 'Commands never overwrite an existing file. The exit code is 73.',
    fix: 'Name another file, or move the existing one. Check that the folder exists.',
    example: {
      files: { 'there.yaml': '' },
      command: 'penstock-agent generate stdin//console --file there.yaml',
      says: '"there.yaml" cannot be created: it exists already.',
    },
  },
  PEN_API_BIND: {
    means: 'The address of `api` does not belong to this machine, or another program uses the port.',
    fix: 'Set another port in `api.address`, or stop the other program. `ss -ltnp` lists listening programs.',
    example: {
      config: `api: { enabled: true, address: "192.0.2.1:8686" }\n${withSource('{ type: stdin }')}`,
      command: run,
      says: 'The observation server cannot listen on 192.0.2.1:8686',
    },
  },
  PEN_UNAVAILABLE: {
    means: 'Commands that show a running agent use its API, which is disabled by default. The exit code is 69.',
    fix: 'Set `api.enabled: true` in the configuration, and give the address with `--url`. In a cluster, use `kubectl penstock top` and `tap`.',
    example: {
      command: 'penstock-agent top --once --no-reconnect --url http://127.0.0.1:9',
      says: 'No agent answers at http://127.0.0.1:9',
    },
  },
  PEN_USAGE: {
    means: 'The command line is invalid, and the command did nothing. The exit code is 64.',
    fix: "Follow the suggestion in the message, or see the command's `--help`.",
    example: {
      command: 'penstock-agent --confg agent.yaml',
      says: 'There is no flag `--confg`. Did you mean `--config`?',
    },
  },
  PEN_INTERNAL: {
    means: 'No configuration should cause this, so there is no example. The exit code is 70.',
    fix: 'Run the command again with `--debug`, which prints the location, and report it. In a cluster, attach the archive of `kubectl penstock support-bundle`.',
  },
}
