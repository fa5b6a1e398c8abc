// Image tags in documents, charts and examples are those that a release pushes: they equal the version.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { version } from '@penstock/agent/program'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const root = join(import.meta.dirname, '../../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const shown =
  /^(?:(?:README|CONTRIBUTING)\.md|kind-config\.yaml|operator\/(?:guide\/.*|install\.yaml)|(?:agent|operator)\/Dockerfile)$|^(?:charts|examples)\//
const files = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter((path) => shown.test(path) && !path.endsWith('.schema.json'))

/** Forms of the version: literal, as a placeholder for readers, and as a shell command that reads package.json. */
const tags = [`:${version}`, ':VERSION', ':$version']

test('every image has the tag of this version', () => {
  const images = files.flatMap((path) =>
    read(path)
      .split('\n')
      // Values contain the repository; the tag is that of the chart.
      .filter((line) => !/repository/i.test(line))
      .flatMap((line) =>
        [...line.matchAll(/(?<![\w@/.-])penstock\/(?:agent|operator|\$name)(?![\w./-])(:[\w.$-]+)?/g)].map(
          ([image, tag]) => ({
            path,
            image,
            tag,
          }),
        ),
      ),
  )
  expect(images.length).toBeGreaterThan(8)
  expect(images.filter(({ tag }) => !tags.includes(tag ?? ''))).toEqual([])
})

test('the charts run images of their own version, which is that of the packages', () => {
  for (const chart of ['penstock', 'penstock-crds'])
    expect(parse(read(`charts/${chart}/Chart.yaml`))).toMatchObject({ version, appVersion: version })
  const { image, agentImage } = parse(read('charts/penstock/values.yaml'))
  for (const [name, value] of Object.entries({ operator: image, agent: agentImage }))
    expect(value).toMatchObject({ repository: `penstock/${name}`, tag: '', digest: '' })
  expect(read('.ci/release')).toContain('"docker://$registry/$1:$version"')
})
