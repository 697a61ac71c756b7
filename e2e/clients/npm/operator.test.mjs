// An operator as people write them in JavaScript: a kind of its own, an informer, a status, owned objects, a finalizer.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import * as k8s from '@kubernetes/client-node'

const SECONDS_MAX = 20
const GROUP = 'beacons.example.com'
const FINALIZER = 'beacons.example.com/dark'

const config = new k8s.KubeConfig()
config.loadFromDefault()
const core = config.makeApiClient(k8s.CoreV1Api)
const definitions = config.makeApiClient(k8s.ApiextensionsV1Api)
const objects = config.makeApiClient(k8s.CustomObjectsApi)
const namespace = `beacons-${randomBytes(4).toString('hex')}`
const PLACE = { group: GROUP, version: 'v1', namespace, plural: 'beacons' }
const MERGE = k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.MergePatch)

const definition = {
  metadata: { name: `beacons.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Namespaced',
    names: { plural: 'beacons', singular: 'beacon', kind: 'Beacon' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', properties: { message: { type: 'string', minLength: 1 } }, required: ['message'] },
              status: { type: 'object', properties: { observedGeneration: { type: 'integer' }, shown: { type: 'string' } } },
            },
          },
        },
      },
    ],
  },
}

async function until(what, look) {
  const deadline = Date.now() + SECONDS_MAX * 1000
  while (Date.now() < deadline) {
    const found = await look()
    if (found) return found
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  assert.fail(`${what} did not come to pass in ${SECONDS_MAX} s`)
}

// Nothing where it is not there.
const find = (promise) =>
  promise.catch((error) => {
    if (error.code !== 404) throw error
  })
const read = (name) => objects.getNamespacedCustomObject({ ...PLACE, name })
const shown = (name) => find(core.readNamespacedConfigMap({ namespace, name }))

// Keeps a ConfigMap with the message of each beacon.
async function reconcile(beacon) {
  const { name, uid, generation, finalizers = [], deletionTimestamp } = beacon.metadata
  if (deletionTimestamp) {
    if (finalizers.includes(FINALIZER)) {
      await objects.patchNamespacedCustomObject({ ...PLACE, name, body: { metadata: { finalizers: null } } }, MERGE)
    }
    return
  }
  if (!finalizers.includes(FINALIZER)) {
    await objects.patchNamespacedCustomObject({ ...PLACE, name, body: { metadata: { finalizers: [FINALIZER] } } }, MERGE)
  }
  const owner = { apiVersion: `${GROUP}/v1`, kind: 'Beacon', name, uid, controller: true }
  const body = { metadata: { name, ownerReferences: [owner] }, data: { message: beacon.spec.message } }
  const held = await shown(name)
  if (!held) await core.createNamespacedConfigMap({ namespace, body })
  else if (held.data.message !== beacon.spec.message) await core.replaceNamespacedConfigMap({ namespace, name, body })
  if (beacon.status?.observedGeneration !== generation) {
    const status = { observedGeneration: generation, shown: beacon.spec.message }
    await objects.patchNamespacedCustomObjectStatus({ ...PLACE, name, body: { status } }, MERGE)
  }
}

// One after another, as a work queue hands them out.
function operator() {
  const failures = []
  let last = Promise.resolve()
  const list = () => objects.listNamespacedCustomObject(PLACE)
  const informer = k8s.makeInformer(config, `/apis/${GROUP}/v1/namespaces/${namespace}/beacons`, list)
  const see = (beacon) => {
    last = last.then(() => reconcile(beacon)).catch((error) => failures.push(error))
  }
  informer.on('add', see)
  informer.on('update', see)
  return { informer, failures }
}

before(() => core.createNamespace({ body: { metadata: { name: namespace } } }))
after(() => core.deleteNamespace({ name: namespace }))

test('a kind of its own is watched, answered with a status, and cleaned up', async () => {
  await definitions.createCustomResourceDefinition({ body: definition })
  await until('Established', async () => {
    const { status } = await definitions.readCustomResourceDefinition({ name: definition.metadata.name })
    return status?.conditions?.some((it) => it.type === 'Established' && it.status === 'True')
  })
  const { informer, failures } = operator()
  await informer.start()

  const body = { apiVersion: `${GROUP}/v1`, kind: 'Beacon', metadata: { name: 'a' }, spec: { message: 'one' } }
  await objects.createNamespacedCustomObject({ ...PLACE, body })
  await until('its ConfigMap', async () => (await shown('a'))?.data.message === 'one')
  const seen = await until('its status', async () => {
    const it = await read('a')
    return it.status?.shown === 'one' && it
  })
  // A status changes no generation, and the finalizer none either.
  assert.equal(seen.metadata.generation, 1)
  assert.deepEqual(seen.metadata.finalizers, [FINALIZER])

  await objects.patchNamespacedCustomObject({ ...PLACE, name: 'a', body: { spec: { message: 'two' } } }, MERGE)
  await until('the other message', async () => (await read('a')).status?.observedGeneration === 2)
  assert.equal((await shown('a')).data.message, 'two')

  const refused = await objects
    .createNamespacedCustomObject({ ...PLACE, body: { ...body, metadata: { name: 'b' }, spec: { message: '' } } })
    .catch((error) => error)
  assert.equal(refused.code, 422)
  assert.match(refused.body.toString(), /spec.message: Invalid value: .*should be at least 1 chars long/)

  await objects.deleteNamespacedCustomObject({ ...PLACE, name: 'a' })
  await until('the end of the beacon', async () => !(await find(read('a'))))
  await until('the end of its ConfigMap', async () => !(await shown('a')))

  // Its informer hears no more of a kind that is gone, and says so instead of hanging.
  const ended = new Promise((resolve) => informer.on('error', resolve))
  await definitions.deleteCustomResourceDefinition({ name: definition.metadata.name })
  const error = await ended
  assert.ok(error, 'the watch ended')
  await informer.stop()
  assert.deepEqual(failures, [])
})
