// For each code of an error what to do about it, and an example that gets it. `explain` prints them; a test runs every example.

import type { ErrorCode } from '../errors.ts'

export interface ErrorExample {
  /** Files that the example has beside its configuration: a text, or a certificate. */
  readonly files?: Readonly<Record<string, string>>
  /** Text of `agent.yaml`. */
  readonly config?: string
  /** The typed command. */
  readonly command: string
  /** A part of what is printed. */
  readonly says: string
}

export interface ErrorHelp {
  /** The meaning, beyond the line of the code. */
  readonly means: string
  readonly fix: string
  /** Where there is none, `means` says why. */
  readonly example?: ErrorExample
}

const run = 'penstock-agent --config agent.yaml'

/** A configuration whose sink has further options. */
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
      'Nothing starts with such a configuration; an agent that runs keeps the one it has. The exit code is 78. Only a few commands end with this code as an error: `run` and `validate` list the problems instead.',
    fix: 'Correct each problem at its place. `penstock-agent validate PATH` lists all of them; `penstock lint -f PATH` does so for resources.',
    example: {
      files: { 'broken.yaml': 'sources: [' },
      command: 'penstock-agent generate --from broken.yaml',
      says: 'broken.yaml:1:10: not valid YAML',
    },
  },
  PEN_CONFIG_UNREADABLE: {
    means: 'The path is wrong, or the account of the agent may not read it.',
    fix: 'Check the path, from the folder in which the command starts, and the permissions of the file and of the folders above it.',
    example: {
      command: 'penstock-agent generate --from missing.yaml',
      says: '"missing.yaml" cannot be read: no such file or directory',
    },
  },
  PEN_DATA_DIR: {
    means: 'Positions of files and disk buffers are kept there, so a source or sink that needs them cannot start.',
    fix: 'Create the directory and let the account of the agent write to it, or name another one by `data_dir`. In a container, mount a volume there.',
    example: {
      config: withSource('{ type: file, include: [/var/log/app.log] }').replace('data_dir: .', 'data_dir: missing'),
      command: run,
      says: 'data_dir "missing" does not exist',
    },
  },
  PEN_TLS_FILE: {
    means: 'An option below `tls` names a file that does not exist, or that the account of the agent may not read.',
    fix: 'Check the path and its permissions. In a container, check that the Secret or volume is mounted there.',
    example: {
      config: withSink('    tls: { ca_file: /missing/ca.pem }\n'),
      command: run,
      says: '`tls.ca_file`: the file /missing/ca.pem cannot be read (no such file or directory)',
    },
  },
  PEN_TLS_KEY_MISSING: {
    means: 'A client that shows a certificate must also prove that it has the key.',
    fix: 'Set `tls.key_file` beside `tls.crt_file`, or give a PKCS#12 file, which contains both.',
    example: {
      files: { 'client.pem': 'CERTIFICATE' },
      config: withSink('    tls: { crt_file: ./client.pem }\n'),
      command: run,
      says: '`tls.crt_file`: the file ./client.pem requires a private key.',
    },
  },
  PEN_TLS_INVALID: {
    means:
      'The file can be read, but it is neither PEM nor DER nor PKCS#12, the key belongs to another certificate, or the passphrase is wrong.',
    fix: 'Look into the file with `openssl x509 -in FILE -text`, or `openssl pkey -in FILE` for a key. A PEM file has lines that begin with `-----BEGIN`.',
    example: {
      files: { 'ca.pem': 'no certificate' },
      config: withSink('    tls: { ca_file: ./ca.pem }\n'),
      command: run,
      says: '`tls.ca_file`: the file ./ca.pem is no certificate in PEM or DER form',
    },
  },
  PEN_PROXY_INVALID: {
    means:
      'A proxy stands in `proxy` of the configuration or of a component, or in the variables `HTTP_PROXY` and `HTTPS_PROXY`. Problems in a configuration are reported with their line.',
    fix: 'Write the address with its scheme, such as `http://proxy:3128`.',
    example: {
      config: `proxy: { http: "proxy:port" }\n${withSink('')}`,
      command: run,
      says: '`http` must be a URL with scheme http or https, such as `http://proxy:3128`',
    },
  },
  PEN_AUTH: {
    means:
      'The destination cannot be asked, because nothing says who asks, or two things say so. Events wait or are discarded, as for other failures of the sink.',
    fix: 'Give credentials in one place only: `auth`, the address, a file, or the environment. Check that a token has not expired.',
    example: {
      config: withSink('    auth: { strategy: basic, user: me, password: pw }\n').replace('http://', 'http://me:pw@'),
      command: run,
      says: 'Remove the user information from the address, or `auth`.',
    },
  },
  PEN_HEALTHCHECK: {
    means:
      'The agent asks each destination once when it starts. Without `--require-healthy` it reports the failure and goes on.',
    fix: 'The message says whether there was no connection or which status came back. Check address, network and credentials; set `healthcheck.uri` if the destination answers checks elsewhere, or `healthcheck.enabled: false`.',
    example: {
      config: withSink('    healthcheck: { uri: "http://127.0.0.1:9/" }\n'),
      command: `${run} --require-healthy`,
      says: 'Sinks unhealthy. out: http://127.0.0.1:9 cannot be reached',
    },
  },
  PEN_REQUEST_FAILED: {
    means:
      'The connection was refused or broke, a proxy refused it, or the answer is none of the protocol. Sinks try such requests again.',
    fix: 'Check that the address and the port belong to the right service, and that no network policy or proxy stands between. `penstock-agent top` shows which component fails.',
    example: {
      config: withSource('{ type: amqp, connection_string: "amqp://127.0.0.1:9/%2F", queue: q, consumer: penstock }'),
      command: `${run} --require-healthy`,
      says: 'The broker amqp://127.0.0.1:9/%2F cannot be used: connect ECONNREFUSED',
    },
  },
  PEN_KUBERNETES: {
    means:
      'Sources of pods and events need the API. They wait and try again if it is away; they do not start if nothing says where it is.',
    fix: 'In a pod, check the service account and its ClusterRole: `kubectl auth can-i list pods --as SERVICEACCOUNT`. Outside, set `kube_config_file`.',
    example: {
      config: withSource('{ type: orchestrator_logs, self_node_name: node-1 }'),
      command: `env -u KUBERNETES_SERVICE_HOST ${run}`,
      says: 'The Kubernetes API is not known',
    },
  },
  PEN_NODE_NAME: {
    means: 'The source reads the pods of one node, and must know which.',
    fix: 'Set the variable `AGENT_SELF_NODE_NAME` in the pod from `spec.nodeName` by the downward API, or set `self_node_name`.',
    example: {
      config: withSource('{ type: orchestrator_logs }'),
      command: `env -u AGENT_SELF_NODE_NAME ${run}`,
      says: 'self_node_name config value or AGENT_SELF_NODE_NAME env var is not set',
    },
  },
  PEN_EGRESS_DENIED: {
    means:
      'Pipelines of namespaces may not reach the node, the API server, metadata services of a cloud, and what the administrator has closed. The address is checked at each connection, because a name may lead to another address later; only an agent with a bundle of the operator does so, so there is no command that shows it.',
    fix: 'Use the address of a service. If the destination is right, ask the administrator to open it: `egress` of the TenantPolicy lists what is closed. `penstock explain T7` has the rule.',
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
    means: 'Commands that write a new file never overwrite one. The exit code is 73.',
    fix: 'Name another file, or move the one that is there. Check that the folder exists.',
    example: {
      files: { 'there.yaml': '' },
      command: 'penstock-agent generate stdin//console --file there.yaml',
      says: '"there.yaml" cannot be created: it exists already.',
    },
  },
  PEN_API_BIND: {
    means: 'The address of `api` is not one of this machine, or another program listens there.',
    fix: 'Choose another port by `api.address`, or end the other program. `ss -ltnp` lists those that listen.',
    example: {
      config: `api: { enabled: true, address: "192.0.2.1:8686" }\n${withSource('{ type: stdin }')}`,
      command: run,
      says: 'The observation server cannot listen on 192.0.2.1:8686',
    },
  },
  PEN_UNAVAILABLE: {
    means: 'Commands that look at a running agent ask its API, which is off by default. The exit code is 69.',
    fix: 'Set `api.enabled: true` in the configuration, and name another address by `--url`. In a cluster, use `kubectl penstock top` and `tap`.',
    example: {
      command: 'penstock-agent top --once --no-reconnect --url http://127.0.0.1:9',
      says: 'No agent answers at http://127.0.0.1:9',
    },
  },
  PEN_USAGE: {
    means: 'Nothing was done. The exit code is 64.',
    fix: 'Follow the suggestion of the message, or read `--help` of the command.',
    example: {
      command: 'penstock-agent --confg agent.yaml',
      says: 'There is no flag --confg. Did you mean --config?',
    },
  },
  PEN_INTERNAL: {
    means: 'No configuration should lead here, so there is no example. The exit code is 70.',
    fix: 'Run the command again with `--debug`, which prints where it happened, and report it. In a cluster, add the archive of `kubectl penstock support-bundle`.',
  },
}
