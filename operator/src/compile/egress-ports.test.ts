import { expect, test } from 'vitest'
import { egressPortsOf } from './egress-ports.ts'

test.each([
  ['http', { uri: 'https://a/{{ b }}' }, [443]],
  ['http', { uri: 'http://a:8080', proxy: { https: 'proxy:3128' } }, [3128, 8080]],
  ['http', { uri: 'https://a', payload_prefix: 'http://text:81' }, [443]], // not an address, although it looks like one
  ['search_engine', { endpoints: ['http://a:9200', 'http://b:9201'] }, [9200, 9201]],
  ['message_broker', { endpoint: 'pulsar+ssl://a:6655,b' }, [6651, 6655]],
  ['message_broker', { endpoint: { $secret: 'x' } }, [6650, 6651]],
  ['logsvc_a', {}, [443]], // by its default
  ['logsvc_a', { host: 'logs.example:8443' }, [8443]], // by another name of the option
  ['siem_unstructured', { region: 'eu' }, [443]],
  ['monitor_a_logs', {}, [443]],
  ['blackhole', {}, []],
] as const)('sink %s with %j connects to %j', (type, options, ports) => {
  expect([...egressPortsOf('sink', { type, ...options })].toSorted((a, b) => a - b)).toEqual(ports)
})

test.each([
  ['amqp', { connection_string: 'amqps://u:p@broker/%2f' }, [5671]],
  ['amqp', { connection_string: { $secret: 'x' } }, [5671, 5672]],
  ['webserver_metrics', { endpoints: ['http://[::1]:81/status'] }, [81]],
  ['demo_logs', {}, []],
] as const)('source %s with %j connects to %j', (type, options, ports) => {
  expect([...egressPortsOf('source', { type, ...options })].toSorted((a, b) => a - b)).toEqual(ports)
})
