import { expect, test } from 'vitest'
import { PenstockError } from '../errors.ts'
import { createLogger } from './logger.ts'

test('a text line contains each cause once, and names the component', () => {
  const written: string[] = []
  const logger = createLogger({ level: 'info', format: 'text' }, { write: (line) => written.push(line) })
  const refused = new Error('connect ECONNREFUSED 127.0.0.1:9')
  const unreachable = new PenstockError('PEN_HEALTHCHECK', `It cannot be reached: ${refused.message}.`, {
    cause: refused,
  })
  logger.info({ error: unreachable }, 'Once.')
  logger.info({ error: new PenstockError('PEN_HEALTHCHECK', 'Sinks unhealthy.', { cause: unreachable }) }, 'After.')
  expect(written.map((line) => line.slice(line.indexOf('error=')))).toEqual([
    'error="It cannot be reached: connect ECONNREFUSED 127.0.0.1:9."\n',
    'error="Sinks unhealthy: It cannot be reached: connect ECONNREFUSED 127.0.0.1:9."\n',
  ])
  // A component's own lines contain its kind and type; a line of the agent about a component contains only its id.
  logger.info({ component_id: 'out', component_kind: 'sink', component_type: 'http', status: 200 }, 'Own.')
  logger.warn({ component_id: 'shop/parse' }, 'About it.')
  expect(written.slice(-2).map((line) => line.slice(line.indexOf('Z ') + 2))).toEqual([
    ' INFO sink{id=out type=http}: Own. status=200\n',
    ' WARN: About it. component_id=shop/parse\n',
  ])
})
