// Files out of Secrets in the pods of Filebeat.

import { expect, test } from 'vitest'
import { converted } from '../../testing/conversions.ts'
import { convertFilebeat } from './convert.ts'

const config = (ssl: string) =>
  `{ filebeat.inputs: [{ type: log, paths: [/a] }], output.elasticsearch: { hosts: ["https://es"], index: a, ssl: { ${ssl} } } }`
const text = JSON.stringify
const options = 'certificate_authorities: [/certs/ca.crt], certificate: /certs/tls.crt, key: /etc/own/key.pem'

test.each([
  [
    'the chart',
    `daemonset:\n  secretMounts: [{ name: a, secretName: store, path: /certs/ }, { name: b, secretName: own, path: /etc/own/key.pem, subPath: private }]\n  filebeatConfig: { filebeat.yml: ${text(config(options))} }\n`,
  ],
  [
    'volumes of the chart',
    `extraVolumes: [{ name: a, secret: { secretName: store } }, { name: b, secret: { secretName: own, items: [{ key: private, path: key.pem }] } }]\nextraVolumeMounts: [{ name: a, mountPath: /certs }, { name: b, mountPath: /etc/own }]\nfilebeatConfig: { filebeat.yml: ${text(config(options))} }\n`,
  ],
  [
    'a workload',
    `kind: ConfigMap\nmetadata: { name: c }\ndata: { filebeat.yml: ${text(config(options))} }\n---\nkind: DaemonSet\nmetadata: { name: f }\nspec: { template: { spec: { containers: [{ name: f, volumeMounts: [{ name: a, mountPath: /certs }, { name: b, mountPath: /etc/own/key.pem, subPath: private }] }], volumes: [{ name: a, secret: { secretName: store } }, { name: b, secret: { secretName: own } }] } } }\n`,
  ],
])('the files of %s are keys of Secrets', (_, given) => {
  const { resource, gaps } = converted(convertFilebeat, [{ file: 'values.yaml', text: given }])
  const at = (name: string, key: string) => ({
    valueFrom: { secretKeyRef: { name, namespace: 'penstock-system', key } },
  })
  expect(resource.spec.sinks[0].config.tls).toEqual({
    ca_file: at('store', 'ca.crt'),
    crt_file: at('store', 'tls.crt'),
    key_file: at('own', 'private'),
  })
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual(
    expect.arrayContaining([
      ['Secret store', true],
      ['Secret own', true],
    ]),
  )
})

test('other files stay files', () => {
  const given = `secretMounts: [{ name: a, secretName: store, path: /certs }]\nfilebeatConfig: { filebeat.yml: ${text(config('certificate_authorities: /certs/sub/ca.crt, certificate: /certs2/tls.crt, key: /certs'))} }\n`
  const { resource } = converted(convertFilebeat, [{ file: 'values.yaml', text: given }])
  expect(resource.spec.sinks[0].config.tls).toEqual({
    ca_file: '/certs/sub/ca.crt',
    crt_file: '/certs2/tls.crt',
    key_file: '/certs',
  })
})
